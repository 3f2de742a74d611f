package shell

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

var noteVerb = verb{
	name: "note", arguments: "FILE", made: true,
	does: "write the line that the list has of this claim's volume into FILE, whole or not at all",
	run:  note,
}

// note writes what an audit needs of a volume that is itself only a directory. No pod may be able to
// write there: an audit deletes by what the file says.
func note(in *container, arguments []string) error {
	if len(arguments) != 1 || arguments[0] == "" {
		return misused("a file is required: flex note FILE")
	}
	path := arguments[0]
	if strings.HasPrefix(filepath.Base(path), ".") || strings.HasSuffix(path, "/") {
		return misused("%q must end with the name of a file that does not begin with a dot: flex list DIR leaves those out", path)
	}
	request, err := in.request()
	if err != nil {
		return err
	}
	line, err := json.Marshal(contract.Listed{
		UID: request.UID, Volume: request.PVName, Size: request.Size,
		Namespace: request.Namespace, Name: request.Name, Class: request.Class, ClusterUID: request.ClusterUID,
	})
	if err != nil {
		return err
	}
	return writeWhole(path, append(line, '\n'))
}

// writeWhole writes a file so that it has all of the content or, at any crash, what it had before.
func writeWhole(path string, content []byte) error {
	dir := filepath.Dir(path)
	file, err := os.CreateTemp(dir, "."+filepath.Base(path)+".") // a name that no pattern such as *.json matches
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // which no longer exists when all is well
	_, err = file.Write(content)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil { //nolint:gosec // the script names it
		return err
	}
	parent, err := os.Open(dir) //nolint:gosec // the script names it
	if err != nil {
		return err
	}
	defer parent.Close()
	return parent.Sync()
}
