package act

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/resolve"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// maxNote is the API server's limit on an event's note, in bytes, with room for an ellipsis.
const maxNote = 1020

// emit emits one event about an object. related is that of causeOf, or nil. A note quotes what others
// have written, and a reason may be what a kubelet says: nothing in them may move the cursor of a
// terminal.
func (a *Actor) emit(regarding, related runtime.Object, kind, why, note string) {
	why, note = quote.Line(why), quote.Lines(note)
	if len(note) > maxNote {
		cut := maxNote
		for !utf8.RuneStart(note[cut]) {
			cut--
		}
		note = note[:cut] + "…"
	}
	a.Recorder.Eventf(regarding, related, kind, why, reason.ActionOf(why, note), "%s", note)
}

// causeOf returns what an event is related to. For an event about a claim that is the Job or ConfigMap
// that is its cause. For any other it is the claim: the event is counted for the claim's namespace
// (internal/eventlimit).
func causeOf(o *observe.Observation, regarding, of runtime.Object) runtime.Object {
	if _, isClaim := regarding.(*corev1.PersistentVolumeClaim); isClaim {
		return of
	}
	return claimOf(o)
}

// claimOf returns a reference to the claim of a UID, which may no longer exist.
func claimOf(o *observe.Observation) *corev1.ObjectReference { return refToClaim(o.At, o.UID) }

func refToClaim(at types.NamespacedName, uid types.UID) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: at.Namespace, Name: at.Name, UID: uid}
}

// reportProblem emits a problem to the claim's user and, if the config is faulty, to the
// administrator. A problem of a volume without a claim is emitted on its PV or its Job.
func (a *Actor) reportProblem(o *observe.Observation, p decide.Problem) {
	var related runtime.Object
	note := p.Note.String()
	if o.Provision.From != nil {
		related = o.Provision.From
		if o.Provision.Faulty {
			a.emit(o.Provision.From, nil, corev1.EventTypeWarning, p.Reason, note)
		}
	}
	for _, about := range concerned(o) {
		a.emit(about, causeOf(o, about, related), corev1.EventTypeWarning, p.Reason, note)
	}
}

// concerned returns the objects on which a problem of a UID is reported.
func concerned(o *observe.Observation) (out []object) {
	switch {
	case o.Holder != nil:
		return []object{o.Holder}
	case o.Claim != nil:
		return []object{o.Claim}
	case o.PV != nil:
		return []object{o.PV}
	}
	for _, job := range jobs.InOrder(o.Jobs) {
		out = append(out, job)
	}
	if len(out) == 0 && o.LeftPod != nil {
		out = append(out, o.LeftPod)
	}
	return out
}

// object is what an event is about.
type object interface {
	runtime.Object
	metav1.Object
}

// ReportDropped reports on the leader's lease that config namespaces were served before and are not
// served now.
func (a *Actor) ReportDropped(lease *coordinationv1.Lease, namespaces string) {
	a.emit(lease, nil, corev1.EventTypeWarning, reason.NamespaceNotServed, fmt.Sprintf("the dispatcher no longer serves these config namespaces: %s. A claim whose class was recreated since may have a Job there, and waits. "+
		"Remedy: add the namespaces to --config-namespaces, or remove them from this lease's annotation %s",
		namespaces, config.AnnNamespaces))
}

// emitLaunched logs and emits that a run was launched.
func (a *Actor) emitLaunched(ctx context.Context, o *observe.Observation, job *batchv1.Job, d decide.Launch) {
	klog.FromContext(ctx).Info("Launched Job", "claim", o.At, "uid", o.UID, "job", klog.KObj(job), "attempt", d.Attempt)
	note := launchNote(o, job, d)
	if old := o.Provision.Fallback; old != nil && d.Verb == contract.Provision { // its user may not get what an administrator has changed
		a.emit(o.Claim, o.Provision.From, corev1.EventTypeWarning, old.Reason, old.Note.String())
	}
	switch {
	case o.Early != "" && !d.Undo:
		a.emit(o.PV, claimOf(o), corev1.EventTypeNormal, reason.Deleting, note+", before the time of keep-deleted: "+o.Early)
	case !d.Undo && !runs.IsReportedAtLaunch(d.Verb, d.Attempt, d.AnyNode): // reportLongRuns does, if it takes long
	case d.Verb == contract.Provision:
		a.emit(o.Claim, job, corev1.EventTypeNormal, reason.Provisioning, note)
	case d.Verb == contract.Expand:
		a.emitResizing(o, job, note)
	case d.Undo:
		a.emit(job, claimOf(o), corev1.EventTypeNormal, reason.Undoing, "deleting the volume that an earlier run may have created for the claim "+o.At.String()+": "+note)
	default:
		a.emit(o.PV, claimOf(o), corev1.EventTypeNormal, reason.Deleting, note)
	}
}

// launchNote says which Job was launched, and under which config and on which node if these are not
// those of the volume.
func launchNote(o *observe.Observation, job *batchv1.Job, d decide.Launch) string {
	note := fmt.Sprintf("Job %s/%s, attempt %d, image %s", job.Namespace, job.Name, d.Attempt, job.Spec.Template.Spec.Containers[0].Image)
	if d.AnyNode {
		note += fmt.Sprintf(", on any node: %s no longer exists, and the config has node-gone: any-node", o.MissingNode(d.Verb))
	}
	if o.PV != nil && d.Verb == contract.Delete && job.Annotations[contract.AnnRevision] != o.PV.Annotations[contract.AnnRevision] {
		note += ", under the present config revision " + job.Annotations[contract.AnnRevision]
	}
	return note
}

// reportLongRuns reports the runs that have not ended after a while and that no event has named. It
// returns until when the UID is to wait: until the time that is given, or until a run is to be
// reported. A run is reported for a while only, in case the UID is observed again and again.
func (a *Actor) reportLongRuns(o *observe.Observation, until time.Time) time.Time {
	for _, r := range o.View.Runs {
		due := r.ReportedAt(r.Created)
		switch {
		case r.State() >= decide.RunEnded || due.IsZero() || !o.View.Now.Before(due.Add(runs.ReportedAfter)):
		case !o.View.Now.Before(due):
			a.emitLongRun(o, r)
		case until.IsZero() || due.Before(until):
			until = due
		}
	}
	return until
}

// emitLongRun emits that a run has not ended yet.
func (a *Actor) emitLongRun(o *observe.Observation, r decide.Run) {
	regarding, _, _ := EventTarget(o, r)
	why := map[contract.Verb]string{contract.Provision: reason.Provisioning, contract.Delete: reason.Deleting, contract.Expand: reason.Resizing}[r.Verb]
	note := fmt.Sprintf("Job %s, attempt %d, since %s", klog.KObj(o.Jobs[r.Name]), r.Attempt, r.Created.UTC().Format(time.RFC3339))
	a.emit(regarding, causeOf(o, regarding, o.Jobs[r.Name]), corev1.EventTypeNormal, why, note)
}

// toldKept is for how long after the release of a volume an event says until when it is kept. The
// recorder counts repeats as one event.
const toldKept = 10 * time.Minute

// reportKept emits until when a released volume is kept, if that is what is waited for.
func (a *Actor) reportKept(o *observe.Observation, d decide.Wait) {
	until := o.View.Volume.KeptUntil
	if until.IsZero() || !d.Until.Equal(until) || !o.View.Now.Before(o.ReleasedAt().Add(toldKept)) {
		return
	}
	ref, how := o.PV.Spec.ClaimRef, "until "+until.UTC().Format(time.RFC3339)
	if o.PV.Status.LastPhaseTransitionTime == nil {
		how = "longer than keep-deleted says, since it is not known when"
	}
	if o.KeepLimit != 0 {
		how += ", or until later ones of the namespace need the bytes of keep-deleted-limit: " + observe.Bytes(o.KeepLimit)
	}
	a.emit(o.PV, claimOf(o), corev1.EventTypeNormal, reason.VolumeKept,
		fmt.Sprintf("the claim %s/%s was deleted, and its volume is kept %s", ref.Namespace, ref.Name, how))
}

// emitWarnings emits to the administrator, whenever a config is used, what should be changed in it.
func (a *Actor) emitWarnings(r resolve.Resolved) {
	for _, cm := range r.Unused {
		a.emit(cm, nil, corev1.EventTypeWarning, r.Fallback.Reason, r.Fallback.Note.String())
	}
	for _, warning := range r.Config.Warnings {
		a.emit(r.From, nil, corev1.EventTypeWarning, reason.ConfigWarning, warning)
	}
}

// emitOutput emits the output of a run, on its Job only. The description of a PV and the results of
// requests that are done are no output for people, and what they say is on record.
func (a *Actor) emitOutput(o *observe.Observation, d decide.RecordOutcome) {
	if output := runs.WithoutResults(d.Run.Output); output != "" && !d.Describes {
		a.emit(o.Jobs[d.Run.Name], claimOf(o), corev1.EventTypeNormal, reason.ContainerOutput, output)
	}
}

// reportRun counts a run, and emits its verdict.
func (a *Actor) reportRun(o *observe.Observation, d decide.RecordOutcome) {
	a.Series.CountRun(countedRun(o, d))
	a.emitOutcome(o, d)
}

// emitOutcome emits the verdict and the image's message for the user where the user looks.
func (a *Actor) emitOutcome(o *observe.Observation, d decide.RecordOutcome) {
	job := o.Jobs[d.Run.Name]
	regarding, good, bad := EventTarget(o, d.Run)
	switch {
	case d.Success && d.Run.Verb == contract.Expand: // finishResize emits it, when the claim has its size
	case d.Success && regarding != runtime.Object(job):
		if !o.IsAsExpected(d.Run) {
			a.emit(regarding, causeOf(o, regarding, job), corev1.EventTypeNormal, good, successNote(o, d))
		}
		a.emitDiffers(o, d, job)
	case !d.Success:
		a.emit(regarding, causeOf(o, regarding, job), corev1.EventTypeWarning, bad, FailureCause(o, d, job, runs.WhereOutput(d.Run.Outcome, job))+failureRemedy(o, d.Run.Outcome, job))
	}
}

// emitDiffers warns about a volume that the claim can use, and that is not what was asked for or
// not the only one. That is not a failure.
func (a *Actor) emitDiffers(o *observe.Observation, d decide.RecordOutcome, job *batchv1.Job) {
	if d.Run.Verb != contract.Provision || o.Claim == nil {
		return
	}
	odd := pvs.Differs(o.PV, o.Claim)
	if o.View.WhyRival != "" {
		odd = o.View.WhyRival + ": the volume is not deleted with the claim"
	}
	if odd != "" {
		a.emit(o.Claim, job, corev1.EventTypeWarning, reason.VolumeDiffers, odd)
	}
}

// EventTarget returns the object on which a run's verdict is emitted, and the reasons for success
// and failure.
func EventTarget(o *observe.Observation, run decide.Run) (regarding runtime.Object, good, bad string) {
	job := o.Jobs[run.Name]
	switch {
	case run.Verb == contract.Provision && o.Claim != nil:
		return o.Claim, reason.ProvisioningSucceeded, reason.ProvisioningFailed
	case run.Verb == contract.Provision:
		return job, reason.ProvisioningSucceeded, reason.ProvisioningFailed
	case run.Verb == contract.Expand && o.Holder != nil:
		return o.Holder, reason.VolumeResizeSuccessful, reason.VolumeResizeFailed
	case run.Verb == contract.Expand:
		return job, reason.VolumeResizeSuccessful, reason.VolumeResizeFailed
	case run.Volume != "" && o.PV != nil:
		return o.PV, reason.Deleting, reason.VolumeFailedDelete
	default:
		return job, reason.Undoing, reason.UndoFailed
	}
}

func successNote(o *observe.Observation, d decide.RecordOutcome) string {
	if d.Run.Verb != contract.Provision {
		return "the volume has been deleted from the storage"
	}
	note := "the PersistentVolume " + contract.PVName(string(o.UID)) + " is ready"
	if v := d.Run.Outcome.Verdict; v != contract.Done && v != contract.Unlisted {
		note += ", although the container ended with " + d.Run.Outcome.String()
	}
	return note
}

// FailureCause says the cause of a failure, in the image's own message if there is one, where its
// output is, if that is not empty, and what happens next.
func FailureCause(o *observe.Observation, d decide.RecordOutcome, job *batchv1.Job, whereOutput string) string {
	out := d.Run.Outcome
	parts := runs.MessageParts(out, job)
	if fault := provisionFault(o, d.Run, job); fault != "" {
		parts = append(parts, fault)
	}
	if d.Run.Short(out) {
		parts = append(parts, fmt.Sprintf("the volume has %s afterwards, and the claim requests %s", d.Run.Reached(out), d.Run.Size()))
	}
	parts = append(parts, fmt.Sprintf("%s of the Job %s/%s, attempt %d", endOf(out), job.Namespace, job.Name, d.Run.Attempt))
	if whereOutput != "" {
		parts = append(parts, whereOutput)
	}
	if !d.Retry.IsZero() && d.Run.Verb != contract.Delete {
		parts = append(parts, o.NextAttempt(d))
	}
	return strings.Join(parts, "; ")
}

// failureRemedy returns what to do about a failure that is not corrected by what the dispatcher sees,
// or nothing.
func failureRemedy(o *observe.Observation, out runs.Outcome, job *batchv1.Job) string {
	if out.Verdict == contract.BadConfig || out.Verdict == contract.NoCredentials {
		return reason.CorrectedSecret(job.Namespace, job.Name, jobs.AnnRetry+"=now")
	}
	if full, ok := o.FullTrash(out); ok {
		return ". " + full.String()
	}
	return ""
}

// endOf returns the verdict of a run that failed, and how it ended. It leaves out Done, which
// people take for a success.
func endOf(out runs.Outcome) string {
	if out.Verdict == contract.Done {
		return out.String()
	}
	return fmt.Sprintf("%s (%s)", out.Verdict, out)
}

// provisionFault returns why a provision has failed beside its exit code, or although that is 0. It
// returns nothing if only the exit code is known.
func provisionFault(o *observe.Observation, run decide.Run, job *batchv1.Job) string {
	vol, fault := o.View.Volume, ""
	switch {
	case run.Verb != contract.Provision:
		return ""
	case vol.Exists() && vol.State != decide.Fits:
		fault = vol.Why
	case o.View.WhyRival != "":
		fault = o.View.WhyRival
	case run.WhyNoPV != "":
		fault = run.WhyNoPV
	case run.Outcome.Verdict == contract.Done:
		fault = "it did not create the PersistentVolume " + contract.PVName(string(o.UID)) + ", as the image must do from " + contract.PVFile
		if why := runs.WhyNoToken(job, o.Pods[job.Name]); why != "" && !run.DescribesPV {
			fault = reason.NoToken(contract.PVName(string(o.UID)), why)
		}
	}
	if run.Outcome.Verdict == contract.Done {
		fault = "the container ended with exit code 0, but " + fault
	}
	return fault
}

func (a *Actor) emitLeftBehind(job *batchv1.Job, claim *corev1.ObjectReference, why string) {
	a.emit(job, claim, corev1.EventTypeWarning, reason.LeftBehind, fmt.Sprintf(
		"the volume that a Job may have created for the claim %s/%s remains in the storage, since %s", claim.Namespace, claim.Name, why))
}

// ReportLeft emits what a Job has on record as left in the storage.
func (a *Actor) ReportLeft(job *batchv1.Job) {
	if jobs.HeadOf(job).Left == 0 {
		return // a new leader asks every Job, and decodes no record in vain
	}
	for _, uid := range jobs.UIDs(job) {
		if r := jobs.RecordOf(job, uid); r.LeftBehind != "" {
			a.emitLeftBehind(job, refToClaim(types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, types.UID(uid)), r.LeftBehind)
		}
	}
}

func (a *Actor) emitUnpublished(o *observe.Observation, d decide.PublishResult, cause error) {
	job := o.Jobs[d.Run.Name]
	note := fmt.Sprintf("the API server refuses the annotations of the result of the Job %s/%s on the claim %s. The dispatcher continues without them. "+
		"Remedy: allow the dispatcher to change the claim's annotations %s... The error: %s", job.Namespace, job.Name, o.At, contract.Domain, quote.Line(cause.Error()))
	for _, about := range []runtime.Object{job, o.Claim} {
		a.emit(about, causeOf(o, about, nil), corev1.EventTypeWarning, reason.ResultNotShown, note)
	}
}
