package contract

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Result is what happened to one request: a line of JSON in the termination message. Each request
// of a batch has one. An expand has one that says how large the volume is.
type Result struct {
	// UID of the claim.
	UID string `json:"uid"`
	// Code is an exit code for this request alone. A line without one is not a result.
	Code *int32 `json:"code"`
	// Message is what the termination message of a Job for this request alone would be.
	Message string `json:"message,omitempty"`
	// Capacity of the volume as it is now.
	Capacity Capacity `json:"capacity,omitempty"`
}

// NewResult returns the result of a request that ended with an exit code.
func NewResult(uid string, code int32) Result { return Result{UID: uid, Code: &code} }

// IsDone reports whether the request was done.
func (r Result) IsDone() bool { return r.Code != nil && *r.Code == ExitDone }

// Encode returns the result as a line of the termination message.
func (r Result) Encode() (string, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("encode the result of %s: %w", r.UID, err)
	}
	return string(b) + "\n", nil
}

// DecodeResults returns the results among the lines of a termination message. All other lines are
// for people.
func DecodeResults(message string) []Result {
	var out []Result
	for line := range strings.Lines(message) {
		var r Result
		if json.Unmarshal([]byte(line), &r) == nil && r.UID != "" && r.Code != nil {
			out = append(out, r)
		}
	}
	return out
}

// Capacity is a size as it is written: "2Gi", or a plain number of bytes, which in JSON may be a
// number. The reader has to check that it is a quantity of Kubernetes.
type Capacity string

// Bytes returns the Capacity of a number of bytes.
func Bytes(n int64) Capacity { return Capacity(fmt.Sprint(n)) }

// MarshalJSON writes a plain number as a number.
func (c Capacity) MarshalJSON() ([]byte, error) {
	if strings.Trim(string(c), "0123456789") == "" && json.Valid([]byte(c)) {
		return []byte(c), nil
	}
	return json.Marshal(string(c))
}

// UnmarshalJSON reads a text or a number. Like Kubernetes it accepts no text with an escape, since
// no quantity needs one.
func (c *Capacity) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		return nil
	}
	if strings.Contains(string(data), `\`) {
		return fmt.Errorf("the capacity %s must be a quantity", data)
	}
	var text string
	if json.Unmarshal(data, &text) != nil {
		var number json.Number
		if err := json.Unmarshal(data, &number); err != nil {
			return err
		}
		text = number.String()
	}
	text = strings.TrimSpace(text) // as Kubernetes reads quantities
	if text == "" || strings.ContainsFunc(text, isNotOfQuantities) {
		return fmt.Errorf("the capacity %q must be a quantity", text)
	}
	*c = Capacity(text)
	return nil
}

// isNotOfQuantities reports whether no quantity has a character. Some of these would be written
// with an escape, which is not read.
func isNotOfQuantities(r rune) bool {
	return (r < '0' || r > '9') && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && !strings.ContainsRune("+-.", r)
}
