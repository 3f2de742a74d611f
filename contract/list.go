package contract

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Listed is a volume of a list: a line of JSON on the container's standard output. An image may add
// fields of its own.
type Listed struct {
	// UID of the claim for which it was made.
	UID string `json:"uid"`
	// Volume is how the storage names it.
	Volume string `json:"volume"`
	// Size in bytes.
	Size int64 `json:"size"`
	// Namespace and Name are the claim's.
	Namespace string `json:"claimNamespace,omitempty"`
	Name      string `json:"claimName,omitempty"`
	// Class is the storage class. Without it a volume is reported, and never deleted by an audit:
	// its class may retain volumes.
	Class string `json:"storageClass,omitempty"`
	// ClusterUID is that of the request for which it was made. Without it a volume is reported, and
	// never deleted by an audit.
	ClusterUID string `json:"clusterUID,omitempty"`
	// CreatedAt is when the storage made it, in RFC 3339, if it is known. It is a text, so that one
	// that is no time loses no volume of a list.
	CreatedAt string `json:"createdAt,omitempty"`
	// Used is how many bytes of the storage it uses, where a quota or the storage tells it.
	Used Used `json:"used,omitzero"`
}

// ListEnd is a line of JSON in the termination message of a list. Without it a list is not
// believed: a log that was cut or rotated looks like one in which volumes are missing.
type ListEnd struct {
	// Lines is how many volumes the list has.
	Lines *int `json:"lines"`
}

// EncodeListEnd returns the line with which the termination message of a list says how many volumes
// it has.
func EncodeListEnd(volumes int) string { return fmt.Sprintf("{\"lines\":%d}\n", volumes) }

// DecodeListEnd returns how many volumes a list has by its termination message, and false if that
// does not say it.
func DecodeListEnd(message string) (volumes int, said bool) {
	for line := range strings.Lines(message) {
		var end ListEnd
		if json.Unmarshal([]byte(line), &end) == nil && end.Lines != nil {
			volumes, said = *end.Lines, true
		}
	}
	return volumes, said
}
