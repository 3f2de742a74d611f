package jobs

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Outcome is what happened to a run.
type Outcome struct {
	Verdict  contract.Verdict `json:"verdict"`
	ExitCode *int32           `json:"exitCode,omitempty"`
	// Reason as Kubernetes says it: OOMKilled, Evicted, DeadlineExceeded, Unknown.
	Reason string `json:"reason,omitempty"`
	// Message is the end of the container's output, printable, at most 1024 bytes.
	Message string `json:"message,omitempty"`
	// Capacity is the size of the volume after an expand, where the container reports it.
	Capacity *resource.Quantity `json:"capacity,omitempty"`
	Finished time.Time          `json:"finished"`
	// MayRunUntil is until when a container of the run may still be running: its node has not
	// reported that it ended, and the dispatcher no longer waits for that report. Nothing else may
	// run for the claim until then.
	MayRunUntil time.Time `json:"mayRunUntil,omitzero"`
	// Node is where that container may still be running, as far as it is known; of a run that was
	// cancelled, where its pod was to start.
	Node string `json:"node,omitempty"`
}

// Cancelled is the Reason of a run that was NotStarted because its Job was deleted before.
const Cancelled = "Cancelled"

func (o Outcome) whyUnknown() string {
	if o.Reason == "" {
		return "its pod no longer exists"
	}
	return o.Reason + ", its node does not know how its container ended"
}

func (o Outcome) whyNotStarted() string {
	switch o.Reason {
	case "":
		return "its container never started"
	case Cancelled:
		return "its Job was deleted, and its container never started"
	default:
		return o.Reason + ", its container never started"
	}
}

// String returns how a run ended in a few words, such as "exit code 75".
func (o Outcome) String() string {
	switch {
	case o.Verdict == contract.Unknown:
		return o.whyUnknown()
	case o.Verdict == contract.Disrupted:
		return "its pod was disrupted"
	case o.Verdict == contract.NotStarted:
		return o.whyNotStarted()
	case o.Verdict == contract.Unlisted:
		return strings.TrimPrefix(o.Reason+", ", ", ") + "the batch has no result of this request"
	case o.Reason != "" && o.ExitCode != nil:
		return fmt.Sprintf("%s, exit code %d", o.Reason, *o.ExitCode)
	case o.ExitCode != nil:
		return fmt.Sprintf("exit code %d", *o.ExitCode)
	case o.Reason != "":
		return o.Reason
	default:
		return "its container never ran"
	}
}
