package jobs

import (
	"encoding/json"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// AnnReturns is, on a provision Job, how often its claim has been returned to the scheduler since that run, as JSON.
// Only the first return follows the run itself, so no other object could be counted for the later ones.
const AnnReturns = contract.Domain + "returns"

// Returns is how often a claim has been returned to the scheduler since a run, and when it was last.
type Returns struct {
	Count int       `json:"count"`
	At    time.Time `json:"at"`
}

// ReturnsOf returns what a Job says of a claim's returns. A damaged annotation counts as none.
func ReturnsOf(job *batchv1.Job, uid string) Returns {
	var r Returns
	text := Annotation(job, uid, AnnReturns)
	if text == "" || json.Unmarshal([]byte(text), &r) != nil {
		return Returns{}
	}
	return r
}

// Announcement returns the annotations of a Job that announce that a claim of this resourceVersion returns to the
// scheduler.
func Announcement(job *batchv1.Job, uid, version string, r Returns) (map[string]string, error) {
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode the returns of the claim %s: %w", uid, err)
	}
	return map[string]string{AnnRescheduled + uid: version, Key(job, uid, AnnReturns): string(text)}, nil
}
