package controller

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// Reasons of events. Those of provisioning are the ones that users know from other provisioners.
const (
	reasonProvisioning = "Provisioning"
	reasonProvisioned  = "ProvisioningSucceeded"
	reasonFailed       = "ProvisioningFailed"
	reasonDeleting     = "Deleting"
	reasonDeleteFailed = "VolumeFailedDelete"
	reasonWithdrawn    = "VolumeWithdrawn"
	reasonDiffers      = "VolumeDiffers"
	reasonUndoing      = "Undoing"
	reasonUndoFailed   = "UndoFailed"
	reasonOutput       = "ContainerOutput"
	reasonLeft         = "LeftBehind"
	reasonUnshown      = "ResultNotShown"
	reasonWarning      = "ConfigWarning"
)

// maxNote is the API server's limit on an event's note, in bytes, with room for an ellipsis.
const maxNote = 1020

// event writes one event, about an object and the Job or ConfigMap that is the cause.
func (c *Controller) event(regarding, related runtime.Object, kind, reason, note string) {
	if len(note) > maxNote {
		cut := maxNote
		for !utf8.RuneStart(note[cut]) {
			cut--
		}
		note = note[:cut] + "…"
	}
	c.recorder.Eventf(regarding, related, kind, reason, actionOf(reason, note), "%s", note)
}

// actionOf stands in the key by which the recorder counts repeats, and the note does not: with the same
// action a claim would go on telling the first cause for minutes when there is another.
func actionOf(reason, note string) string {
	const room = 100 // of the API server's 128 for an action; a reason may be somebody else's
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(note)) // it never fails
	return fmt.Sprintf("%s-%08x", reason[:min(len(reason), room)], sum.Sum32())
}

// tellProblem tells the claim's user, and the administrator where the config is at fault. What concerns
// a volume without a claim is told on its PV or its Job.
func (c *Controller) tellProblem(o *observation, p decide.Problem) {
	var related runtime.Object
	if o.serve.from != nil {
		related = o.serve.from
		if o.serve.faulty {
			c.event(o.serve.from, nil, corev1.EventTypeWarning, p.Reason, p.Note)
		}
	}
	switch {
	case o.holder != nil:
		c.event(o.holder, related, corev1.EventTypeWarning, p.Reason, p.Note)
	case o.claim != nil:
		c.event(o.claim, related, corev1.EventTypeWarning, p.Reason, p.Note)
	case o.pv != nil:
		c.event(o.pv, related, corev1.EventTypeWarning, p.Reason, p.Note)
	default:
		for _, job := range o.jobs {
			c.event(job, related, corev1.EventTypeWarning, p.Reason, p.Note)
		}
	}
}

func (c *Controller) tellLaunched(ctx context.Context, o *observation, job *batchv1.Job, a decide.Launch) {
	klog.FromContext(ctx).Info("launched", "claim", o.at, "uid", o.uid, "job", klog.KObj(job), "attempt", a.Attempt)
	note := fmt.Sprintf("Job %s/%s, attempt %d, image %s", job.Namespace, job.Name, a.Attempt, job.Spec.Template.Spec.Containers[0].Image)
	if a.AnyNode {
		note += fmt.Sprintf(", on any node: %s does not exist any more, and its config says node-gone: any-node", o.gone(a.Verb))
	}
	if a.LeftBehind != "" {
		c.event(o.jobs[o.view.Newest(contract.Provision).Name], nil, corev1.EventTypeWarning, reasonLeft,
			"what it may have made in the storage for the claim "+o.at.String()+" stays there, since "+a.LeftBehind)
	}
	switch {
	case a.Verb == contract.Provision:
		c.event(o.claim, job, corev1.EventTypeNormal, reasonProvisioning, note)
	case a.Verb == contract.Expand:
		c.tellExpanding(o, job, note)
	case a.Undo:
		c.event(job, nil, corev1.EventTypeNormal, reasonUndoing, "deletes what the claim "+o.at.String()+" may have left in the storage: "+note)
	default:
		c.event(o.pv, job, corev1.EventTypeNormal, reasonDeleting, note)
	}
}

// gone names the node around which a run of this verb was launched.
func (o *observation) gone(verb contract.Verb) string {
	if verb == contract.Expand {
		return o.view.Expand.MissingNode
	}
	return o.view.Delete.MissingNode
}

// tellWarnings reminds the administrator of what serves but should not stay so, whenever it serves.
func (c *Controller) tellWarnings(r resolved) {
	for _, warning := range r.cfg.Warnings {
		c.event(r.from, nil, corev1.EventTypeWarning, reasonWarning, warning)
	}
}

// tellSettled: the verdict and the image's words for the user go where the user looks; the rest of the
// output goes to the Job only.
func (c *Controller) tellSettled(o *observation, a decide.RecordOutcome) {
	job := o.jobs[a.Run.Name]
	if a.Run.Output != "" {
		c.event(job, nil, corev1.EventTypeNormal, reasonOutput, a.Run.Output)
	}
	regarding, good, bad := c.audience(o, a.Run)
	switch {
	case a.Success && a.Run.Verb == contract.Expand: // told when the claim has its size
	case a.Success && regarding != runtime.Object(job):
		c.event(regarding, job, corev1.EventTypeNormal, good, successNote(o, a))
		c.tellOdd(o, a, job)
	case !a.Success:
		c.event(regarding, job, corev1.EventTypeWarning, bad, c.failureNote(o, a, job))
	}
}

// tellOdd: a volume that serves, and is not what was asked for or not the only one, is no failure.
func (c *Controller) tellOdd(o *observation, a decide.RecordOutcome, job *batchv1.Job) {
	if a.Run.Verb != contract.Provision || o.claim == nil {
		return
	}
	odd := pvs.Differs(o.pv, o.claim)
	if o.view.Rival != "" {
		odd = o.view.Rival + ": nothing deletes it when the claim goes"
	}
	if odd != "" {
		c.event(o.claim, job, corev1.EventTypeWarning, reasonDiffers, odd)
	}
}

// audience is where a run's verdict is told, and under which reasons.
func (c *Controller) audience(o *observation, run decide.Run) (regarding runtime.Object, good, bad string) {
	job := o.jobs[run.Name]
	switch {
	case run.Verb == contract.Provision && o.claim != nil:
		return o.claim, reasonProvisioned, reasonFailed
	case run.Verb == contract.Provision:
		return job, reasonProvisioned, reasonFailed
	case run.Verb == contract.Expand && o.holder != nil:
		return o.holder, reasonResized, reasonResizeFailed
	case run.Verb == contract.Expand:
		return job, reasonResized, reasonResizeFailed
	case run.Volume != "" && o.pv != nil:
		return o.pv, reasonDeleting, reasonDeleteFailed
	default:
		return job, reasonUndoing, reasonUndoFailed
	}
}

func successNote(o *observation, a decide.RecordOutcome) string {
	if a.Run.Verb != contract.Provision {
		return "the volume has been deleted from the storage"
	}
	note := "the PersistentVolume " + contract.PVName(string(o.uid)) + " is ready"
	if v := a.Run.Outcome.Verdict; v != contract.Done && v != contract.Unlisted {
		note += ", although the container ended with " + a.Run.Outcome.String()
	}
	return note
}

// failureNote names the cause, in the image's own words where it has some, and what comes next.
func (c *Controller) failureNote(o *observation, a decide.RecordOutcome, job *batchv1.Job) string {
	out := a.Run.Outcome
	parts := said(out, job)
	if fault := provisionFault(o, a.Run); fault != "" {
		parts = append(parts, fault)
	}
	if a.Run.Short {
		parts = append(parts, fmt.Sprintf("the volume has %s after it, and %s was asked for", a.Run.Reached(out), a.Run.Size()))
	}
	parts = append(parts, fmt.Sprintf("%s (%s) of the Job %s/%s, attempt %d", out.Verdict, out, job.Namespace, job.Name, a.Run.Attempt))
	if !a.Retry.IsZero() && a.Run.Verb != contract.Delete {
		parts = append(parts, nextNote(o, a))
	}
	return strings.Join(parts, "; ")
}

// provisionFault is why a provision has failed beside its exit code, or although that is 0; "" if nothing else is
// known.
func provisionFault(o *observation, run decide.Run) string {
	vol, fault := o.view.Volume, ""
	switch {
	case run.Verb != contract.Provision:
		return ""
	case vol.Mismatch != "":
		fault = vol.Mismatch
	case vol.Unproven != "":
		fault = vol.Unproven
	case o.view.Rival != "":
		fault = o.view.Rival
	case run.Refused != "":
		fault = run.Refused
	case run.Outcome.Verdict == contract.Done:
		fault = "it wrote no PersistentVolume " + contract.PVName(string(o.uid))
	}
	if run.Outcome.Verdict == contract.Done {
		fault = "the container ended with exit code 0, but " + fault
	}
	return fault
}

// said is what the image has said for the claim's user, or else where the administrator reads the rest.
func said(out runs.Outcome, job *batchv1.Job) []string {
	if words := contract.ForClaim(out.Message); words != "" {
		return []string{words}
	}
	if out.Message == "" && out.Verdict != contract.Unlisted {
		return nil
	}
	return []string{fmt.Sprintf("the administrator finds its output by kubectl -n %s describe job %s", job.Namespace, job.Name)}
}

// nextNote tells when the next attempt comes.
func nextNote(o *observation, a decide.RecordOutcome) string {
	next := "next attempt in " + a.Retry.Sub(a.Run.Outcome.Finished).Round(time.Second).String()
	if a.Run.Verb == contract.Provision && a.Run.Outcome.Verdict == contract.NoCapacity && o.view.Provision.NodeSelected {
		next += ", sooner on another node: the scheduler is to choose again"
	}
	return next
}

func (c *Controller) tellLeft(o *observation, job *batchv1.Job, why string) {
	c.event(job, nil, corev1.EventTypeWarning, reasonLeft, fmt.Sprintf(
		"the claim %s has gone and what its Job may have made in the storage stays there, since %s", o.at, why))
}

func (c *Controller) tellUnshown(o *observation, a decide.PublishResult, cause error) {
	c.event(o.jobs[a.Run.Name], nil, corev1.EventTypeWarning, reasonUnshown, fmt.Sprintf(
		"its result cannot be written on the claim %s, and the dispatcher goes on without: let it change the claim's annotations %s…: %v",
		o.at, contract.Domain, cause))
}

// result is what a claim's annotations say of a run. Only lines meant for the user are in the message.
func result(run decide.Run, success bool, pv *corev1.PersistentVolume) map[string]string {
	out := map[string]string{
		contract.AnnProvisionTS: run.Outcome.Finished.UTC().Format(time.RFC3339),
		contract.AnnAttempts:    strconv.Itoa(run.Attempt),
		contract.AnnResult:      "failed",
		contract.AnnExitCode:    "",
		contract.AnnMessage:     contract.ForClaim(run.Outcome.Message),
	}
	if success {
		out[contract.AnnResult] = "succeeded"
		if source := pv.Annotations[contract.AnnCloneOf]; source != "" {
			out[contract.AnnClaimCloneOf] = source
		}
	}
	if code := run.Outcome.ExitCode; code != nil {
		out[contract.AnnExitCode] = strconv.Itoa(int(*code))
	}
	return out
}

// shown tells whether a claim's annotations say just that.
func shown(claim *corev1.PersistentVolumeClaim, want map[string]string) bool {
	if claim == nil {
		return false
	}
	got := maps.Clone(claim.Annotations)
	maps.DeleteFunc(got, func(key, _ string) bool { _, wanted := want[key]; return !wanted })
	return maps.Equal(got, want)
}
