package onedocument

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// SecondError says that a text has another document.
type SecondError struct{ line int }

// Error names the line of the other document, and the remedy.
func (e SecondError) Error() string {
	return fmt.Sprintf("line %d belongs to a second YAML document, and only one is read: remove the line --- before it,"+
		" or the document that is not meant", e.line)
}

// Parse returns the document, undecoded. An empty one is no document of its own.
func Parse(text []byte) (*yaml.Node, error) {
	var first yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	err := decoder.Decode(&first)
	for err == nil {
		var next yaml.Node
		if err = decoder.Decode(&next); err == nil && !isEmpty(next) {
			return nil, SecondError{next.Content[0].Line}
		}
	}
	if errors.Is(err, io.EOF) {
		return &first, nil
	}
	return nil, err
}

func isEmpty(document yaml.Node) bool {
	return len(document.Content) == 0 || document.Content[0].Tag == "!!null"
}
