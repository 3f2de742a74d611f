package plugin

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

// extensions are those of the files that kubectl reads of a directory (FileExtensions of
// k8s.io/cli-runtime/pkg/resource).
var extensions = []string{".json", ".yaml", ".yml"}

// readNamed reads what a name stands for, as the resource.Builder of kubectl does: the standard
// input, a file, the files of a directory without those below it, or those that match a pattern.
func (m *manifests) readNamed(name string, stdin io.Reader) error {
	if name == "-" {
		return m.readFrom("-", stdin)
	}
	if strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://") {
		return fmt.Errorf("%s is no file. "+
			"Remedy: curl --fail --location %s, piped into this command with --filename=-",
			quote.Name(name), quote.Name(name))
	}
	names := []string{name}
	if _, err := os.Stat(name); errors.Is(err, os.ErrNotExist) {
		matches, err := filepath.Glob(name)
		if err != nil || len(matches) == 0 {
			return fmt.Errorf("the file %s does not exist. "+
				"Remedy: correct its path, or change the directory", quote.Name(name))
		}
		names = matches
	}
	var faults []error
	for _, name := range names {
		faults = append(faults, m.readPath(name))
	}
	return errors.Join(faults...)
}

func (m *manifests) readPath(name string) error {
	entries, err := os.ReadDir(name)
	if err != nil { // no directory
		return m.readFile(name)
	}
	var files []string
	for _, entry := range entries {
		file := filepath.Join(name, entry.Name())
		if isKustomization(file) {
			return m.readFile(file)
		}
		if !entry.IsDir() && slices.Contains(extensions, filepath.Ext(file)) {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		return fmt.Errorf("the directory %s has no file with one of the extensions %s, and "+
			"those below it are not read. Remedy: name the directory of the files",
			quote.Name(name), strings.Join(extensions, ", "))
	}
	var faults []error
	for _, file := range files {
		faults = append(faults, m.readFile(file))
	}
	return errors.Join(faults...)
}

func isKustomization(file string) bool {
	base := filepath.Base(file)
	return base == "kustomization.yaml" || base == "kustomization.yml" || base == "Kustomization"
}

func (m *manifests) readFile(name string) error {
	if isKustomization(name) {
		return fmt.Errorf("%s is a kustomization. "+
			"Remedy: kubectl kustomize %s, piped into this command with --filename=-",
			quote.Name(name), quote.Name(filepath.Dir(name)))
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it is only read
	return m.readFrom(name, file)
}

func (m *manifests) readFrom(name string, in io.Reader) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return fmt.Errorf("read %s: %w", quote.Name(name), err)
	}
	var faults []error
	for _, d := range documentsOf(string(text)) {
		if err := m.readDocument(place{name, d.begins()}, d.text); err != nil {
			faults = append(faults, fmt.Errorf("%s: %w", place{name, d.begins()}, d.inFile(err)))
		}
	}
	return errors.Join(faults...)
}

// document is a part of a file, with the number of lines before it.
type document struct {
	text   string
	before int
}

// documentsOf splits a text before each line that separates documents of YAML.
func documentsOf(text string) []document {
	var out []document
	begin, end := 0, 0
	before, number := 0, 0
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "---") {
			out = append(out, document{text: text[begin:end], before: before})
			begin, before = end, number
		}
		end += len(line)
		number++
	}
	return append(out, document{text: text[begin:], before: before})
}

// begins is the number of the first line that is no separator, comment or blank.
func (d document) begins() int {
	number := d.before + 1
	for line := range strings.Lines(d.text) {
		line = strings.TrimSpace(strings.TrimPrefix(line, "---"))
		if line != "" && line[0] != '#' {
			break
		}
		number++
	}
	return number
}

var lineOfError = regexp.MustCompile(`\bline (\d+)`)

// inFile returns an error of a document with the lines of its file.
func (d document) inFile(err error) error {
	return errors.New(lineOfError.ReplaceAllStringFunc(err.Error(), func(text string) string {
		number, _ := strconv.Atoi(lineOfError.FindStringSubmatch(text)[1]) // it matches
		return "line " + strconv.Itoa(d.before+number)
	}))
}
