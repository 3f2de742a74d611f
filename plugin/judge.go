package plugin

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/act"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/resolve"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/slots"
)

// judge says how the claim is doing, by what the dispatcher does next.
func (d *Dispatcher) judge(r *Report, o *observe.Observation, action decide.Action) {
	switch a := action.(type) { //nolint:gochecksumtype // nextStep names the others
	case decide.ReportProblem:
		r.fail(a.Problem)
		r.NextAt = timeOf(a.Until)
		if last := awaited(o); a.Problem.Reason == reason.Stalled && last != nil {
			judgeStalled(r, o, *last, a.Problem)
		}
		if a.Problem.Reason == reason.RecordTooNew {
			r.doubtPlugin()
		}
	case decide.AwaitSlot:
		d.judgeWaiting(r, o, a)
	case decide.Wait:
		d.judgeIdle(r, o, a)
	default:
		r.State, r.Next = Working, nextStep(action)
	}
}

// fail says what is in the way.
func (r *Report) fail(p decide.Problem) {
	r.State, r.Reason = Failed, shownName(p.Reason)
	r.Cause, r.Remedy = strings.TrimRight(quote.Lines(p.Note.Cause), ". "), quote.Lines(p.Note.Remedy)
	if r.Remedy == "" && p.Reason == reason.InvalidConfig {
		r.Remedy = "correct the ConfigMap. It is used at once"
	}
}

// doubtPlugin says that this program may be what does not know a record: the dispatcher of a
// cluster is upgraded first.
func (r *Report) doubtPlugin() {
	r.Remedy = "install the kubectl flex of the dispatcher's release. If that says the same, " + r.Remedy
}

// failBy says that an event is in the way. Its text is a cause and never a remedy: whoever may
// create events beside a claim, as Kubernetes' ClusterRole edit may, chooses who has reported it,
// too.
func (r *Report) failBy(e *corev1.Event) {
	r.State, r.Reason, r.Cause, r.Remedy = Failed, shownName(e.Reason), saidBy(e), ""
}

// saidBy returns what an event says, as a cause.
func saidBy(e *corev1.Event) string { return "an event says: " + textOf(e) }

func textOf(e *corev1.Event) string { return strings.TrimRight(quote.Lines(e.Message), ". ") }

// judgeWaiting says for whom a claim waits that has no slot.
func (d *Dispatcher) judgeWaiting(r *Report, o *observe.Observation, a decide.AwaitSlot) {
	if a.Behind != nil {
		r.fail(*a.Behind)
		return
	}
	cfg := o.ConfigFor(a.Verb).Config
	holders := d.slots().Holders(slots.KeyOf(cfg.Source), cfg.MaxParallel)
	r.fail(decide.Problem{Reason: reason.WaitingForSlot, Note: reason.AllSlotsUsed(cfg.MaxParallel, cfg.Source.Class, holders)})
	r.State = Working
}

// judgeIdle says why the dispatcher has nothing to do for now.
func (d *Dispatcher) judgeIdle(r *Report, o *observe.Observation, a decide.Wait) {
	last := newest(o.View.Runs)
	if last != nil && last.State() < decide.RunEnded {
		r.State, r.Next = Working, fmt.Sprintf("the Job %s ends", last.Name)
		return
	}
	if after := awaited(o); after != nil {
		judgeFailure(r, o, *after)
		r.NextAt = timeOf(a.Until)
		return
	}
	if o.Claim == nil {
		judgeUnclaimed(r, o, a)
		return
	}
	d.judgeClaim(r, o, a)
}

// judgeClaim says what a claim waits for that no Job is at work for.
func (d *Dispatcher) judgeClaim(r *Report, o *observe.Observation, a decide.Wait) {
	switch state := o.View.State(); {
	case o.Claim.DeletionTimestamp != nil:
		r.State, r.Next = Working, "Kubernetes deletes the claim when no pod uses it"
	case o.Claim.Status.Phase == corev1.ClaimLost && o.Claim.Spec.VolumeName != "":
		d.judgeLost(r, o)
	case state == decide.StateBinding:
		r.State, r.Next = Working, "Kubernetes binds the claim to the PersistentVolume "+o.PV.Name
	case o.View.Claim == decide.ClaimNotOurs:
		d.judgeNotOurs(r, o)
	case o.View.Claim == decide.ClaimPending:
		judgeReturned(r, o, a.Why)
		r.NextAt = timeOf(a.Until)
	default:
		d.judgeBound(r, o)
	}
}

// judgeReturned says what comes next for a claim that no Job is at work for. If the claim was
// returned to the scheduler, since the node had no room or is being drained, that is the cause,
// also after the undo of that run.
func judgeReturned(r *Report, o *observe.Observation, next string) {
	last := newest(slices.DeleteFunc(slices.Clone(o.View.Runs), func(run decide.Run) bool { return run.Verb != contract.Provision }))
	returns := []contract.Verdict{contract.NoCapacity, contract.Disrupted}
	if last != nil && last.Recorded != nil && slices.Contains(returns, last.Outcome.Verdict) {
		judgeFailure(r, o, *last)
		r.Next = "the scheduler selects a node again"
		return
	}
	r.State, r.Next = Working, next
}

// judgeUnclaimed says what is left of a claim that no longer exists.
func judgeUnclaimed(r *Report, o *observe.Observation, a decide.Wait) {
	terminating := o.View.Volume.Terminating
	switch state := o.View.State(); {
	case state == decide.StateInUse && !terminating && o.PV.Spec.ClaimRef != nil && o.PV.Spec.ClaimRef.UID == o.UID:
		r.State, r.Next = Working, "Kubernetes releases the PersistentVolume"
	case terminating || o.View.Now.Before(a.Until):
		r.State, r.Next, r.NextAt = Working, a.Why, timeOf(a.Until)
	default:
		r.State = OK
	}
}

// judgeBound says how a claim is doing that names its PersistentVolume.
func (d *Dispatcher) judgeBound(r *Report, o *observe.Observation) {
	leftToNode := o.Holder != nil && len(o.Claim.Status.AllocatedResourceStatuses) > 0
	switch {
	case o.Claim.Status.Phase != corev1.ClaimBound:
		d.judgeNamed(r, o)
	case d.isInDoubt(o):
		r.fail(decide.Problem{Reason: reason.VolumeInDoubt, Note: reason.Unproven.After("the claim is bound, but %s: ", o.View.Volume.Why)})
	case leftToNode && observe.NodeWorkOf(o.PV) == observe.NodeByHand:
		r.fail(decide.Problem{Reason: reason.FileSystemResizeRequired, Note: act.ByHandNote(o.PV)})
	case leftToNode:
		r.State, r.Next = Working, "the kubelet expands the file system within two minutes, once a pod uses the claim"+ofDirectory(o.PV)
	default:
		r.State = OK
	}
}

// ofDirectory adds that the kubelet has nothing to do for a directory (NodeExpand in
// pkg/volume/local/local.go). The kubelet still says so itself: it looks at the volumes of a pod
// every 60 to 90 seconds (workerResyncIntervalJitterFactor in pkg/kubelet/pod_workers.go).
func ofDirectory(pv *corev1.PersistentVolume) string {
	if pv.Spec.Local == nil {
		return ""
	}
	return ". A directory has its new size already: only the claim's status changes"
}

// isInDoubt reports whether a claim is bound to a PV that proves no provision, and that has the
// dispatcher's finalizer: its volume neither grows nor is deleted with the claim.
func (d *Dispatcher) isInDoubt(o *observe.Observation) bool {
	vol, class := o.View.Volume, d.classOf(o)
	mine := class != nil && class.Provisioner == d.Serving.Provisioner
	return mine && o.View.State() == decide.StateInDoubt && vol.HasFinalizer && vol.PolicyDelete
}

// judgeNamed says what a claim waits for that names a PersistentVolume, and is not bound to it yet.
func (d *Dispatcher) judgeNamed(r *Report, o *observe.Observation) {
	name := quote.Name(o.Claim.Spec.VolumeName)
	if d.caches.PVs.Named(o.Claim.Spec.VolumeName) != nil {
		r.State, r.Next = Working, "Kubernetes binds the claim to the PersistentVolume "+name
		return
	}
	r.fail(*decide.Problemf("", "the claim names the PersistentVolume %s, which does not exist", name).
		Remedyf("create that PersistentVolume. Or create the claim without spec.volumeName"))
}

// judgeLost says that a claim that was bound has no PersistentVolume. Its volume may still be in
// the storage, so the remedy does not touch the claim.
func (d *Dispatcher) judgeLost(r *Report, o *observe.Observation) {
	name := quote.Name(o.Claim.Spec.VolumeName)
	if d.caches.PVs.Named(o.Claim.Spec.VolumeName) != nil {
		r.fail(*decide.Problemf(reason.ClaimLost, "the claim names the PersistentVolume %s, which names another claim", name).
			Remedyf("if it is this claim's, an administrator must reserve it for the claim (docs/operate.md#volumes-that-are-kept), and then %s",
				quote.Command("kubectl", "-n", o.Claim.Namespace, "annotate", "pvc", o.Claim.Name, storagehelpers.AnnBindCompleted+"-")))
		return
	}
	r.fail(*decide.Problemf(reason.ClaimLost, "the claim was bound to the PersistentVolume %s, which does not exist", name).
		Remedyf("an administrator must restore the PersistentVolume from a backup. The volume may still be in the storage: kubectl flex audit says so"))
}

// newest returns the run that was created last, or nil.
func newest(runs []decide.Run) *decide.Run {
	if all := byAge(runs); len(all) > 0 {
		return &all[len(all)-1]
	}
	return nil
}

// awaited returns the run after which the next one waits: the one that ends the wait when an
// administrator asks for a retry on its Job. It is nil if there is none. The newest Job may be
// another: that of an undo which has succeeded, say.
func awaited(o *observe.Observation) *decide.Run {
	v := o.View
	for _, run := range slices.Backward(byAge(v.Runs)) {
		if run.State() < decide.RunEnded || run.RetryNow {
			continue
		}
		v.Runs = slices.Clone(o.View.Runs)
		i := slices.IndexFunc(v.Runs, func(r decide.Run) bool { return r.Name == run.Name })
		v.Runs[i].RetryNow = true
		if action := decide.Decide(v); !isIdle(action) {
			return &run
		}
	}
	return nil
}

// isIdle reports whether an action only waits.
func isIdle(action decide.Action) bool {
	switch action.(type) { //nolint:gochecksumtype // the others are writes
	case decide.Wait, decide.ReportProblem:
		return true
	default:
		return false
	}
}

// judgeFailure says why a run failed, as its event does. A container's message is part of the
// cause, whatever it says. A run that was ended from outside is repeated, and no user has to do
// anything.
func judgeFailure(r *Report, o *observe.Observation, last decide.Run) {
	said, where := quote.Lines(last.Outcome.Message), ""
	if said == "" {
		where = runs.WhereOutput(last.Outcome, o.Jobs[last.Name]) // other output is below
	}
	note := runs.WhyNotStarted(last.Outcome) // the chain says how which Job ended
	if note.Cause == "" {
		note.Cause = act.FailureCause(o, decide.RecordOutcome{Run: last}, o.Jobs[last.Name], where)
	}
	_, _, why := act.EventTarget(o, last)
	r.fail(decide.Problem{Reason: why, Note: note})
	r.failed = string(last.Outcome.Verdict)
	if contract.ForClaim(said) == "" && !strings.Contains(r.Cause, said) {
		r.Cause += ". " + sourceOf(last) + ": " + said // of a Job, which only an administrator may read
	}
	if full, ok := o.FullTrash(last.Outcome); ok {
		r.Cause, r.Remedy = r.Cause+". "+full.Cause, full.Remedy
	}
	if r.Remedy == "" {
		r.Remedy = remedyFor(r, last)
	}
	attempt := last.Attempt
	if last.Outcome.Verdict.Counted() {
		attempt++
	}
	r.Next = fmt.Sprintf("attempt %d", max(attempt, 1))
	if verdict := last.Outcome.Verdict; verdict == contract.Disrupted || verdict == contract.Unknown {
		r.State = Working
	}
}

// sourceOf says whose words the message of a failed run is. Of a pod that was evicted, rejected or
// past its deadline, or that no longer exists, Kubernetes may have written it.
func sourceOf(run decide.Run) string {
	if out := run.Outcome; out.ExitCode != nil && (out.Reason == "" || out.Reason == "OOMKilled") {
		return "Its output"
	}
	return "On record"
}

// judgeStalled says why the last attempt of max-attempts failed.
func judgeStalled(r *Report, o *observe.Observation, last decide.Run, p decide.Problem) {
	judgeFailure(r, o, last)
	r.Reason, r.Next, r.Cause = p.Reason, "", r.Cause+"; "+quote.Lines(p.Note.String())
	if again := "kubectl flex retry " + r.argument(); r.Remedy == "" {
		r.Remedy = "correct the cause, then " + again
	} else if !strings.Contains(r.Remedy, again) && last.Outcome.Verdict != contract.BadRequest && last.Outcome.Verdict != contract.BadConfig {
		r.Remedy += ". Then " + again
	}
}

// judgeNotOurs says what a claim waits for that the dispatcher has nothing to do with yet.
func (d *Dispatcher) judgeNotOurs(r *Report, o *observe.Observation) {
	class := d.classOf(o)
	_, selected := o.Claim.Annotations[storagehelpers.AnnSelectedNode]
	switch {
	case o.Claim.Spec.VolumeName != "":
		d.judgeNamed(r, o)
	case r.Class == "":
		r.fail(*decide.Problemf("", "the claim has no storageClassName, so no provisioner serves it").Remedyf("create it with a class, or mark a class as the default one"))
	case class == nil:
		r.fail(*decide.Problemf("", "the StorageClass %s does not exist", r.Class).Remedyf("create it, or create the claim with another class"))
	case class.Provisioner != d.Serving.Provisioner:
		r.fail(*decide.Problemf("", "the class %s is served by another provisioner, %s, and this dispatcher serves %s", class.Name, quote.Name(class.Provisioner), d.Serving.Provisioner).
			Remedyf("its own documentation. If it is another dispatcher, --dispatcher names its Deployment"))
	case cluster.IsPopulated(o.Claim):
		r.State, r.Next = Working, "the populator of the claim's dataSourceRef fills a volume for it"
	case resolve.WaitsForNode(class) && !selected:
		judgeReturned(r, o, "a pod uses the claim: the class has volumeBindingMode WaitForFirstConsumer")
	case pvs.ProvisionerOf(o.Claim) != "" && pvs.ProvisionerOf(o.Claim) != d.Serving.Provisioner:
		r.fail(*decide.Problemf("", "Kubernetes has asked another provisioner, %s, for the volume of the claim: its class had that provisioner before", quote.Name(pvs.ProvisionerOf(o.Claim))).
			Remedyf("create the claim again"))
	default:
		r.State, r.Next = Working, "kube-controller-manager binds the claim to an existing PersistentVolume, or asks for a new one"
	}
}

// classOf returns the class of a claim, or nil.
func (d *Dispatcher) classOf(o *observe.Observation) *storagev1.StorageClass {
	return d.caches.Classes.Named(storagehelpers.GetPersistentVolumeClaimClass(o.Claim))
}
