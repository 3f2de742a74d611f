package shell

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

var listVerb = verb{
	name: "list", arguments: "[FILE|DIR...]",
	does: "print the lines that flex note has written, and how many there are",
	run:  list,
}

// list prints a list of volumes, and its end. It prints nothing if it cannot read everything: an
// audit would take the others for lost.
func list(in *container, arguments []string) error {
	var all []byte
	for _, path := range arguments {
		lines, err := notes(path)
		if err != nil {
			return err
		}
		all = append(all, lines...)
	}
	if _, err := in.out.Write(all); err != nil {
		return err
	}
	return in.setMessage(contract.EncodeListEnd(bytes.Count(all, []byte("\n"))))
}

// notes returns the lines of a file, or of the files in a directory, which may be more than fit into
// the arguments of a program.
func notes(path string) ([]byte, error) {
	info, err := os.Stat(path) //nolint:gosec // the script names it
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%q does not exist. Remedy: mount the export, or name the directory instead of a pattern that matches nothing", cut(path))
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return noted(path)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var all []byte
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") { // flex note writes there
			continue
		}
		lines, err := noted(filepath.Join(path, entry.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // its volume has been deleted meanwhile
			return nil, err
		}
		all = append(all, lines...)
	}
	return all, nil
}

// noted returns the lines of a file.
func noted(path string) ([]byte, error) {
	content, err := os.ReadFile(path) //nolint:gosec // the script names it
	if err != nil {
		return nil, err
	}
	if len(content) == 0 {
		return nil, fmt.Errorf("%q is empty, as a program that failed leaves it. "+
			"Remedy: call flex list without a file if the storage has no volume", cut(path))
	}
	if !bytes.HasSuffix(content, []byte("\n")) {
		return nil, fmt.Errorf("%q is not whole: it does not end with a line break. Remedy: write it by flex note", cut(path))
	}
	for line := range bytes.Lines(content) {
		var volume contract.Listed
		if err := json.Unmarshal(line, &volume); err != nil {
			return nil, fmt.Errorf("%q is not whole: %w. Remedy: write it by flex note", cut(path), err)
		}
		if volume.UID == "" || volume.Volume == "" {
			return nil, fmt.Errorf("%q has a line without uid or volume. Remedy: write it by flex note", cut(path))
		}
	}
	return content, nil
}
