package shell

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

var listVerb = verb{
	name: "list", arguments: "[--used FILE] [FILE|DIR...]",
	does: "print the lines that flex note has written, and how many there are; the lines of --used have a volume and the bytes that it uses",
	run:  list,
}

// list prints a list of volumes, and its end. It prints nothing if it cannot read everything: an
// audit would take the others for lost.
func list(in *container, arguments []string) error {
	var all []byte
	used, arguments, err := usedBytes(arguments)
	if err != nil {
		return err
	}
	for _, path := range arguments {
		lines, err := notes(path)
		if err != nil {
			return err
		}
		all = append(all, lines...)
	}
	if len(used) > 0 {
		all = withUsed(all, used)
	}
	if _, err := in.out.Write(all); err != nil {
		return err
	}
	return in.setMessage(contract.EncodeListEnd(bytes.Count(all, []byte("\n"))))
}

// usedBytes reads the file of the option --used, and returns what the volumes use, by their names,
// and the other arguments.
func usedBytes(arguments []string) (used map[string]int64, others []string, err error) {
	if len(arguments) == 0 || arguments[0] != "--used" {
		return nil, arguments, nil
	}
	if len(arguments) == 1 || arguments[1] == "" {
		return nil, nil, misused("--used needs a file: flex list --used FILE DIR")
	}
	content, err := os.ReadFile(arguments[1]) //nolint:gosec // the script names it
	if err != nil {
		return nil, nil, err
	}
	used = map[string]int64{}
	for line := range strings.Lines(string(content)) {
		words := strings.Fields(line)
		if len(words) != 2 {
			return nil, nil, fmt.Errorf("%q of --used is not a volume and the bytes that it uses", cut(line))
		}
		n, err := strconv.ParseUint(words[1], 10, 63)
		if err != nil {
			return nil, nil, fmt.Errorf("%q of --used is not a volume and the bytes that it uses", cut(line))
		}
		used[words[0]] = int64(n)
	}
	return used, arguments[2:], nil
}

// withUsed adds to lines of flex note what their volumes use. All else stays as it is: a line may have
// fields of the script's own.
func withUsed(lines []byte, used map[string]int64) []byte {
	var out []byte
	for line := range bytes.Lines(lines) {
		var volume contract.Listed
		if json.Unmarshal(line, &volume) == nil {
			if n, known := used[volume.Volume]; known {
				object := bytes.TrimSuffix(bytes.TrimSpace(line), []byte("}"))
				line = fmt.Appendf(slices.Clone(object), ",\"used\":%d}\n", n)
			}
		}
		out = append(out, line...)
	}
	return out
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
