package volume

import (
	"encoding/json"
	"fmt"
)

// Connection is how a volume is reached: its kind in the storage's words ("iscsi"), and details that
// may hold passwords. No way of printing it shows the details; Decode is the one way to read them.
type Connection struct {
	Kind string
	data json.RawMessage
}

// NewConnection keeps the details as the storage sent them, in JSON.
func NewConnection(kind string, data json.RawMessage) Connection {
	return Connection{Kind: kind, data: data}
}

// Empty reports whether there are no details yet.
func (c Connection) Empty() bool { return c.Kind == "" }

// Decode reads the details into a value of the caller's.
func (c Connection) Decode(into any) error {
	if err := json.Unmarshal(c.data, into); err != nil {
		return fmt.Errorf("read the %s connection that the storage described: %w", c.Kind, err)
	}
	return nil
}

// String hides the details from %s and %v.
func (c Connection) String() string { return c.Kind + " connection [redacted]" }

// GoString hides the details from %#v.
func (c Connection) GoString() string { return c.String() }

// MarshalText hides the details from JSON and YAML, and from slog, whose handlers ask for it.
func (c Connection) MarshalText() ([]byte, error) { return []byte(c.String()), nil }
