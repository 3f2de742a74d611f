package volume

import (
	"encoding/json"
	"errors"
	"maps"
)

// Access is how a volume is made reachable. At first it is what the class asks for; of an exported
// volume it is what is needed to remove the export. It is recorded on the PV.
type Access struct {
	// Method is how the backend exports the volume.
	Method Method
	// ID is the backend's name of the export, where the method gives it one.
	ID string
	// Client is whom the volume is exported to.
	Client Client
	// Recorded is true if only an export that an earlier run recorded is to be returned, kept or
	// ended, and none made.
	Recorded bool
}

// Method is one of a backend's ways to export a volume, by the backend's name for it.
type Method string

// Client is how the nodes present themselves to the storage. Its JSON is what the storage is sent,
// and is recorded on the PV.
type Client struct {
	Initiator string   `json:"initiator,omitempty"`
	Host      string   `json:"host,omitempty"`
	IP        string   `json:"ip,omitempty"`
	Platform  string   `json:"platform,omitempty"`
	OSType    string   `json:"os_type,omitempty"`
	Multipath bool     `json:"multipath"`
	WWPNs     []string `json:"wwpns,omitempty"`
	WWNNs     []string `json:"wwnns,omitempty"`
	NQN       string   `json:"nqn,omitempty"`
	HostID    string   `json:"nvme_hostid,omitempty"`
	// Extra holds what only some storages ask for, by their own names for it. Its JSON is beside
	// the other fields.
	Extra map[string]any `json:"-"`
}

// fields is a Client without its methods.
type fields Client

// MarshalJSON writes the fields and what is in Extra. No key of Extra replaces a field.
func (c Client) MarshalJSON() ([]byte, error) {
	data, err := json.Marshal(fields(c))
	if err != nil || len(c.Extra) == 0 {
		return data, err
	}
	all := maps.Clone(c.Extra)
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	return json.Marshal(all)
}

// UnmarshalJSON reads the fields, and the other keys into Extra.
func (c *Client) UnmarshalJSON(data []byte) error {
	var extra map[string]any
	if err := errors.Join(json.Unmarshal(data, (*fields)(c)), json.Unmarshal(data, &extra)); err != nil {
		return err
	}
	maps.DeleteFunc(extra, func(key string, _ any) bool { return IsClientField(key) })
	if c.Extra = nil; len(extra) > 0 {
		c.Extra = extra
	}
	return nil
}

// IsClientField reports whether a key of a Client's JSON is one of its fields.
func IsClientField(key string) bool {
	switch key {
	case "initiator", "host", "ip", "platform", "os_type", "multipath", "wwpns", "wwnns", "nqn", "nvme_hostid":
		return true
	default:
		return false
	}
}
