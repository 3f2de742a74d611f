package runs

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// Report returns the annotations of a claim that report a run of this attempt. The message has only
// the lines that are meant for the user. pv is the claim's own, of a run that succeeded.
func Report(attempt int, o Outcome, success bool, pv *corev1.PersistentVolume) map[string]string {
	out := map[string]string{
		contract.AnnProvisionTS: o.Finished.UTC().Format(time.RFC3339),
		contract.AnnAttempts:    strconv.Itoa(attempt),
		contract.AnnResult:      "failed",
		contract.AnnExitCode:    "",
		contract.AnnMessage:     contract.ForClaim(o.Message),
	}
	if success {
		out[contract.AnnResult] = "succeeded"
		if source := pv.Annotations[contract.AnnCloneOf]; source != "" {
			out[contract.AnnClaimCloneOf] = source
		}
	}
	if o.ExitCode != nil {
		out[contract.AnnExitCode] = strconv.Itoa(int(*o.ExitCode))
	}
	return out
}

// IsReported reports whether a claim, which may be nil, has these very annotations, as far as the
// caches keep them.
func IsReported(claim *corev1.PersistentVolumeClaim, want map[string]string) bool {
	if claim == nil {
		return false
	}
	got := maps.Clone(claim.Annotations)
	maps.DeleteFunc(got, func(key, _ string) bool { _, wanted := want[key]; return !wanted })
	return maps.EqualFunc(got, want, func(a, b string) bool { return jobs.Abridge(a) == jobs.Abridge(b) })
}

// MessageParts returns the remedy for a container that could not start or lacked memory, and the
// image's message for the claim's user.
func MessageParts(out Outcome, job *batchv1.Job) (parts []string) {
	if why := WhyNotStarted(out); why.Cause != "" {
		return append(parts, why.String())
	}
	if out.Reason == outOfMemory {
		parts = append(parts, fmt.Sprintf("the container exceeded its memory limit: an administrator must raise resources.limits.memory of the container %s in the config's "+
			"pod-template (default: %s for each script at work)", contract.Container, jobs.MemoryLimit))
	}
	if writesPV := !jobs.RecordOf(job, jobs.UIDs(job)[0]).DescribesPV; writesPV && lacksPermission(out.Message) {
		parts = append(parts, reason.MayNotWritePVs)
	}
	if lacksInterpreter(out.Message) {
		parts = append(parts, reason.NoInterpreter)
	}
	if isNoProgram(out.Message) {
		parts = append(parts, reason.OtherArchitecture)
	}
	if message := contract.ForClaim(out.Message); message != "" {
		parts = append(parts, message)
	}
	return parts
}

// WhereOutput says where an administrator finds the output of a run. It is empty if there is none, or
// if the message for the claim's user says it.
func WhereOutput(out Outcome, job *batchv1.Job) string {
	if WhyNotStarted(out).Cause != "" || contract.ForClaim(out.Message) != "" || out.Message == "" && out.Verdict != contract.Unlisted {
		return ""
	}
	return fmt.Sprintf("an administrator finds its output by kubectl -n %s describe job %s", job.Namespace, job.Name)
}

// isNoProgram reports whether the kernel took a file of a run for no program, as its output says. An
// image may say the same of a program that it starts, so the run counts as any other.
func isNoProgram(output string) bool {
	return strings.Contains(strings.ToLower(output), "exec format error")
}

// lacksInterpreter reports whether the kernel has not found the interpreter of a script, while the
// script is there. runc 1.1.5 prints that and ends with 1, when it has started the container
// already.
func lacksInterpreter(output string) bool {
	return strings.Contains(output, contract.ScriptFile+": no such file or directory")
}

// lacksPermission reports whether the API server has refused a container what it needs for a PV, as
// its output quotes it.
func lacksPermission(output string) bool {
	return strings.Contains(output, "is forbidden: User ") && strings.Contains(output, ` resource "persistentvolumes" `)
}

// WhyNotStarted returns what kept a container from starting and what to do, if its node has said so.
func WhyNotStarted(out Outcome) reason.Note {
	switch {
	case out.Verdict != contract.NotStarted || out.Message == "" || out.Reason == deadlineExceeded:
		return reason.Note{}
	case isStartError(out.Reason):
		return reason.CouldNotStart(out.Reason, out.Message)
	default:
		return reason.Rejected(out.Reason, out.Message)
	}
}
