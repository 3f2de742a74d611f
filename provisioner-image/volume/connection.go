package volume

import (
	"encoding/json"
	"fmt"
)

// Connection is how a volume is reached: its kind by the storage's name ("iscsi"), and details that
// may contain passwords. No way of printing it shows the details. Decode is the only way to read
// them.
type Connection struct {
	Kind string
	data json.RawMessage
}

// NewConnection returns a Connection with the details as the storage sent them, in JSON.
func NewConnection(kind string, data json.RawMessage) Connection {
	return Connection{Kind: kind, data: data}
}

// IsEmpty reports whether there are no details yet.
func (c Connection) IsEmpty() bool { return c.Kind == "" }

// Decode decodes the details into a value.
func (c Connection) Decode(into any) error {
	if err := json.Unmarshal(c.data, into); err != nil {
		return fmt.Errorf("read the storage's description of a %s connection: %w", c.Kind, err)
	}
	return nil
}

// String hides the details from %s and %v.
func (c Connection) String() string { return c.Kind + " connection [redacted]" }

// GoString hides the details from %#v.
func (c Connection) GoString() string { return c.String() }

// MarshalText hides the details from JSON, YAML and slog.
func (c Connection) MarshalText() ([]byte, error) { return []byte(c.String()), nil }
