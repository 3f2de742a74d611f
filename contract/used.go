package contract

import (
	"bytes"
	"strconv"
)

// Used is how many bytes of a storage a volume uses, as far as the storage tells it.
type Used struct {
	Bytes int64
	Known bool
}

// UsedBytes returns an amount that is known.
func UsedBytes(n int64) Used { return Used{Bytes: n, Known: true} }

// IsZero reports whether an amount is not known. It is then left out.
func (u Used) IsZero() bool { return !u.Known }

// MarshalJSON returns a number, and null for an amount that is not known.
func (u Used) MarshalJSON() ([]byte, error) {
	if !u.Known {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, u.Bytes, 10), nil
}

// UnmarshalJSON reads a whole number of bytes. An image may have given a field of its own this name
// before: any other value is an amount that is not known, and loses no volume of a list.
func (u *Used) UnmarshalJSON(text []byte) error {
	*u = Used{}
	if n, err := strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64); err == nil && n >= 0 {
		*u = UsedBytes(n)
	}
	return nil
}
