package plugin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/act"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/slots"
)

// Explain says why the claim of a UID, or what is left of it, is as it is.
func (d *Dispatcher) Explain(ctx context.Context, uid types.UID) (*Report, error) {
	o, action, err := d.next(ctx, uid)
	if err != nil {
		return nil, err
	}
	r := newReport(string(uid))
	d.describe(r, o)
	d.judge(r, o, action)
	if d.idle != "" && r.State == Working {
		r.State, r.Cause = Failed, d.idle+", so no claim is served"
		r.Remedy = fmt.Sprintf("kubectl --namespace=%s get pods,events", d.At.Namespace)
	}
	return r, nil
}

// describe fills in what there is.
func (d *Dispatcher) describe(r *Report, o *observe.Observation) {
	if o.At.Name != "" {
		r.Claim = o.At.String()
	}
	if c := o.Claim; c != nil {
		size := c.Spec.Resources.Requests[corev1.ResourceStorage]
		r.Size, r.Phase, r.Created = size.String(), string(c.Status.Phase), timeOf(c.CreationTimestamp.Time)
		r.Class = storagehelpers.GetPersistentVolumeClaimClass(c)
	}
	if o.PV != nil {
		r.Volume, r.Class, r.Revision = o.PV.Name, cmp.Or(r.Class, o.PV.Spec.StorageClassName), o.PV.Annotations[contract.AnnRevision]
	}
	if src := o.Provision.Config.Source; src.Name != "" {
		r.Config, r.Revision = src.Namespace+"/"+src.Name, src.Revision()
	}
	for _, run := range byAge(o.View.Runs) {
		r.Runs = append(r.Runs, describeRun(o, run))
	}
}

// byAge returns runs, the oldest first.
func byAge(runs []decide.Run) []decide.Run {
	return slices.SortedFunc(slices.Values(runs), func(a, b decide.Run) int {
		return cmp.Or(a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
}

func describeRun(o *observe.Observation, run decide.Run) Run {
	job := o.Jobs[run.Name]
	out := Run{
		Job: job.Namespace + "/" + job.Name, Verb: string(run.Verb), Attempt: run.Attempt, Claims: max(len(run.UIDs), 1),
		Node: cmp.Or(run.Outcome.Node, run.Node), Created: job.CreationTimestamp,
	}
	if !run.Unfinished {
		out.Ended = timeOf(run.Outcome.Finished)
		out.Verdict, out.Outcome, out.Message = string(run.Outcome.Verdict), run.Outcome.String(), quote.Lines(run.Outcome.Message)
	}
	return out
}

// judge says how the claim is doing, by what the dispatcher does next.
func (d *Dispatcher) judge(r *Report, o *observe.Observation, action decide.Action) {
	switch a := action.(type) { //nolint:gochecksumtype // nextStep names the others
	case decide.ReportProblem:
		r.fail(a.Problem)
		r.NextAt = timeOf(a.Until)
	case decide.AwaitSlot:
		d.judgeWaiting(r, o, a)
	case decide.Wait:
		d.judgeIdle(r, o, a)
	default:
		r.State, r.Next = Working, nextStep(action)
	}
}

// fail says what is in the way. A note names the remedy after the cause.
func (r *Report) fail(p decide.Problem) {
	cause, remedy, _ := strings.Cut(quote.Lines(p.Note), "Remedy")
	r.State, r.Reason = Failed, p.Reason
	r.Cause = strings.TrimRight(cause, ". ")
	switch {
	case remedy == "" && p.Reason == reason.InvalidConfig:
		r.Remedy = "correct the ConfigMap. It is used at once"
	case remedy != "":
		r.Remedy = strings.TrimSpace(strings.TrimLeft(remedy, ":,"))
	}
}

// judgeWaiting says for whom a claim waits that has no slot.
func (d *Dispatcher) judgeWaiting(r *Report, o *observe.Observation, a decide.AwaitSlot) {
	if a.Behind != nil {
		r.fail(*a.Behind)
		return
	}
	cfg := o.ConfigFor(a.Verb).Config
	holders := slots.New(d.caches, d.Clock, func(types.UID) {}).Holders(slots.KeyOf(cfg.Source))
	r.fail(decide.Problem{Reason: reason.WaitingForSlot, Note: reason.AllSlotsUsed(cfg.MaxParallel, cfg.Source.Class, holders)})
	r.State = Working
}

// judgeIdle says why the dispatcher has nothing to do for now.
func (d *Dispatcher) judgeIdle(r *Report, o *observe.Observation, a decide.Wait) {
	last := newest(o.View.Runs)
	switch {
	case last != nil && last.Unfinished:
		r.State, r.Next = Working, fmt.Sprintf("the Job %s ends", last.Name)
	case last != nil && last.Outcome.Verdict != contract.Done && o.View.Now.Before(a.Until):
		d.judgeFailure(r, o, *last, a.Until)
	case o.View.Claim == decide.ClaimNotOurs:
		d.judgeNotOurs(r, o)
	case o.View.Claim == decide.ClaimPending || o.View.Volume.Terminating:
		r.State, r.Next, r.NextAt = Working, a.Why, timeOf(a.Until)
	default:
		r.State = OK
	}
}

// newest returns the run that was created last, or nil.
func newest(runs []decide.Run) *decide.Run {
	if all := byAge(runs); len(all) > 0 {
		return &all[len(all)-1]
	}
	return nil
}

// judgeFailure says why the newest run failed, as its event does.
func (d *Dispatcher) judgeFailure(r *Report, o *observe.Observation, last decide.Run, again time.Time) {
	note := act.FailureNote(o, decide.RecordOutcome{Run: last}, o.Jobs[last.Name])
	r.fail(decide.Problem{Reason: failedReasons[last.Verb], Note: note})
	if r.Remedy == "" {
		r.Remedy = remedyFor(r, last)
	}
	r.Next, r.NextAt = fmt.Sprintf("attempt %d", last.Attempt+1), timeOf(again)
}

// failedReasons are the reasons of the events about a failed run.
var failedReasons = map[contract.Verb]string{
	contract.Provision: reason.ProvisioningFailed, contract.Delete: reason.VolumeFailedDelete, contract.Expand: reason.VolumeResizeFailed,
}

// remedyFor returns what to do about the failed newest run of a report whose note names no remedy. No
// remedy of an expand or a delete touches the claim, which has data.
func remedyFor(r *Report, run decide.Run) string {
	output := fmt.Sprintf("kubectl --namespace=%s describe job %s", run.JobNamespace(), run.Name)
	config := cmp.Or(r.Config, configOf(r.Revision))
	switch v := run.Outcome.Verdict; {
	case v == contract.BadConfig:
		return fmt.Sprintf("correct the ConfigMap %s. The next attempt then follows at once", config)
	case v == contract.NoCapacity:
		return "free space in the storage, or have its quota raised"
	case v == contract.NoCredentials:
		return fmt.Sprintf("correct the Secret that the ConfigMap %s names. A changed Secret starts no attempt by itself: kubectl flex retry %s", config, r.argument())
	case v == contract.BadRequest && run.Verb == contract.Provision:
		return "delete the claim, and create it with a request that the storage can serve"
	case v == contract.BadRequest && run.Verb == contract.Expand:
		return "request a size in the claim that the storage can serve. It must not be smaller than the present one"
	case v == contract.BadRequest, v == contract.TryAgain, v == contract.Done:
		return "check the storage. The container's output: " + output
	default:
		return ""
	}
}

// configOf returns the ConfigMap of a config revision, "namespace/name", which is named after it and
// a hash.
func configOf(revision string) string {
	i := strings.LastIndex(revision, "-")
	if i < 0 {
		return "of the class"
	}
	return revision[:i]
}

// argument returns what names the claim in a command, or the PersistentVolume if the claim no longer
// exists.
func (r *Report) argument() string {
	namespace, name, _ := strings.Cut(r.Claim, "/")
	if r.Size == "" && r.Volume != "" {
		return "pv/" + r.Volume
	}
	return name + " --namespace=" + namespace
}

// judgeNotOurs says what a claim waits for that the dispatcher has nothing to do with yet.
func (d *Dispatcher) judgeNotOurs(r *Report, o *observe.Observation) {
	class := d.caches.Classes.Named(r.Class)
	_, selected := o.Claim.Annotations[storagehelpers.AnnSelectedNode]
	switch {
	case r.Class == "":
		r.fail(decide.Problem{Note: "the claim has no storageClassName, so no provisioner serves it. Remedy: create it with a class, or mark a class as the default one"})
	case class == nil:
		r.fail(decide.Problem{Note: fmt.Sprintf("the StorageClass %s does not exist. Remedy: create it, or create the claim with another class", quote.Name(r.Class))})
	case class.Provisioner != d.Serving.Provisioner:
		r.fail(decide.Problem{Note: fmt.Sprintf("the class %s is served by another provisioner, %s. Remedy: its own documentation", class.Name, quote.Name(class.Provisioner))})
	case o.Claim.Spec.VolumeName != "":
		r.State, r.Next = Working, "Kubernetes binds the claim to the PersistentVolume "+quote.Name(o.Claim.Spec.VolumeName)
	case isDelayed(class) && !selected:
		r.State, r.Next = Working, "a pod uses the claim: the class has volumeBindingMode WaitForFirstConsumer"
	default:
		r.State, r.Next = Working, "kube-controller-manager binds the claim to an existing PersistentVolume, or asks for a new one"
	}
}
