package mapper

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Backends differ in how they write numbers and lists. The types in this file read every way that
// is known; what a text may look like is in forms.go.

// decode reads a connection's details. What cannot be read is a fault of the class, since the
// storage would say the same to every further run. The error names the field; it shows a value only
// if that is no password.
func decode(c volume.Connection, into any) error {
	if err := c.Decode(into); err != nil {
		return unsupported("this image cannot %s", err)
	}
	return nil
}

// number is a LUN, as a number or in text. It is not known if the backend sends none, or null.
type number struct {
	value int64
	known bool
	// null is true if the backend says that there is none.
	null bool
}

// UnmarshalJSON accepts a number, a number in text, and null.
func (n *number) UnmarshalJSON(data []byte) error {
	*n = number{}
	text := strings.Trim(string(data), `" `)
	if text == "" || text == "null" {
		n.null = true
		return nil
	}
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return errors.New("a LUN is not a number")
	}
	*n = number{value: value, known: true}
	return nil
}

// oneOrMany is a field that some backends send as one value and others as a list.
type oneOrMany[T ~string] []T

// UnmarshalJSON accepts both.
func (s *oneOrMany[T]) UnmarshalJSON(data []byte) error {
	*s = nil
	if strings.HasPrefix(strings.TrimSpace(string(data)), "[") {
		return json.Unmarshal(data, (*[]T)(s))
	}
	var one T
	err := json.Unmarshal(data, &one)
	if one != "" {
		*s = []T{one}
	}
	return err
}
