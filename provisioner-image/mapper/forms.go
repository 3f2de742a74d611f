package mapper

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Backends differ in how they write numbers and lists. The types in this file read every form that is known.

// decode reads a connection's details. What cannot be read is a fault of the class, since the storage would say the same
// to every further run. The error names the field and no value, which may be a password.
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
}

// UnmarshalJSON accepts a number, a number in text, and null.
func (n *number) UnmarshalJSON(data []byte) error {
	*n = number{}
	text := strings.Trim(string(data), `" `)
	if text == "" || text == "null" {
		return nil
	}
	value, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return errors.New("a LUN is no number")
	}
	*n = number{value: value, known: true}
	return nil
}

// stringOrList is a field that some backends send as a string and others as a list.
type stringOrList []string

// UnmarshalJSON accepts both.
func (s *stringOrList) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*s = nil
		if one != "" {
			*s = []string{one}
		}
		return nil
	}
	var many []string
	err := json.Unmarshal(data, &many)
	*s = many
	return err
}

// textOrNo is a field that some backends send as text and others as a number.
type textOrNo string

// UnmarshalJSON accepts both.
func (t *textOrNo) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) == nil {
		*t = textOrNo(text)
		return nil
	}
	var number json.Number
	err := json.Unmarshal(data, &number)
	*t = textOrNo(number)
	return err
}
