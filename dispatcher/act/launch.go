package act

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/slots"
)

// Member is a UID of a batch and the launch that was decided for it.
type Member struct {
	O      *observe.Observation
	Launch decide.Launch
}

// Launch creates the Job of a run, for one claim or for a batch of claims that ask for the same. If
// a Job of that name exists, another leader created it a moment ago, and the caches will show it.
func (a *Actor) Launch(ctx context.Context, first Member, others ...Member) error {
	plan, err := a.planOf(first, others)
	if err != nil {
		return err
	}
	if most := plan.Config.AtOnceOf(1 + len(others)); most > 0 {
		plan.Parallel = a.Slots.Widen(first.O.UID, most, plan.Config.MaxParallel)
	}
	a.reportLaunchedOver(first, others)
	job, err := a.createJob(ctx, first.O, plan)
	if apierrors.IsAlreadyExists(err) {
		a.awaitJob(first.O, job)
		return nil
	}
	if patch.IsRefused(err) && !patch.IsStripped(err) && len(others) == 0 {
		a.reportProblem(first.O, *decide.Problemf(reason.LaunchFailed, "the API server refused the Job %s/%s: %v", job.Namespace, job.Name, err))
	}
	if err != nil {
		return err
	}
	a.Writes.Wrote(job)
	for _, m := range append([]Member{first}, others...) {
		a.emitLaunched(ctx, m.O, job, m.Launch)
	}
	if first.Launch.Verb == contract.Provision {
		a.emitWarnings(first.O.Provision)
	}
	return nil
}

// reportLaunchedOver emits what earlier runs have left in the storage that are not undone.
func (a *Actor) reportLaunchedOver(first Member, others []Member) {
	for _, m := range append([]Member{first}, others...) {
		if left := m.Launch.LeftBehind; left != "" && !isReported(m.O.View.Newest(contract.Provision), left) {
			a.emitLeftBehind(m.O.Jobs[m.O.View.MayHaveMade().Name], claimOf(m.O), left)
		}
	}
}

// isReported reports whether an event has said already what stays in the storage: the last run was
// launched over it and has made nothing more. Or an administrator has given it up, which is
// reported with the release of its record.
func isReported(last *decide.Run, left string) bool {
	return left == reason.Forgotten || left == last.LeftBehind && last.Outcome.Verdict.MadeNothing()
}

// awaitJob waits for the caches to show a Job that exists already. If it does not appear, it
// belongs to another claim or has lost its labels.
func (a *Actor) awaitJob(o *observe.Observation, job *batchv1.Job) {
	if a.Writes.Exists(job) {
		a.reportProblem(o, *decide.Problemf(reason.LaunchFailed, "the Job %s/%s exists already, but lacks the labels by which the dispatcher finds its Jobs", job.Namespace, job.Name).
			Remedyf("delete the Job, and let no webhook remove labels from Jobs"))
	}
}

// Plan returns what the Job of a single claim is built from.
func (a *Actor) Plan(m Member) (jobs.Plan, error) { return a.planOf(m, nil) }

// Trim returns as many of the others as fit into one Job with the first. The annotations of its pod
// are limited in size.
func (a *Actor) Trim(first Member, others []Member) ([]Member, error) {
	plan, err := a.planOf(first, others)
	if err != nil {
		return nil, err
	}
	plan, err = jobs.TrimToSize(plan)
	return others[:len(plan.With)], err
}

// createJob builds the Job of a plan and creates it. It returns the Job that was created or, with an
// error, the one that was to be.
func (a *Actor) createJob(ctx context.Context, o *observe.Observation, plan jobs.Plan) (*batchv1.Job, error) {
	job, err := jobs.Build(plan)
	if err != nil {
		return nil, fmt.Errorf("build the Job of the claim %s: %w", o.At, err)
	}
	a.Slots.Use(job)
	release := a.Slots.Unused // also after a panic
	defer func() {
		if release != nil {
			release(job)
		}
	}()
	created, err := a.Client.BatchV1().Jobs(job.Namespace).Create(ctx, job, metav1.CreateOptions{FieldManager: patch.FieldManager})
	if err == nil {
		err = a.cancelIfStripped(ctx, job, created)
	}
	switch {
	case err == nil:
		release = nil
		a.Slots.Created(created)
	case apierrors.IsAlreadyExists(err), mayHaveCreated(err):
		release = a.Slots.Unknown
	}
	if err != nil {
		return job, fmt.Errorf("create the Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	return created, nil
}

// mayHaveCreated reports whether an object may exist although its creation failed: the API server
// did not say.
func mayHaveCreated(err error) bool {
	switch apierrors.ReasonForError(err) {
	case metav1.StatusReasonUnknown, metav1.StatusReasonTimeout, metav1.StatusReasonServerTimeout,
		metav1.StatusReasonInternalError, metav1.StatusReasonServiceUnavailable:
		return true
	default:
		return false
	}
}

// planOf joins the plans of all members. The Job's number is unused for each of them.
func (a *Actor) planOf(first Member, others []Member) (jobs.Plan, error) {
	plan, err := a.planOne(first.O, first.Launch)
	for _, m := range others {
		if err != nil {
			return plan, err
		}
		var one jobs.Plan
		one, err = a.planOne(m.O, m.Launch)
		plan.With = append(plan.With, one)
		plan.Number = max(plan.Number, one.Number)
	}
	return plan, err
}

// planOne returns what the Job is built from: the claim's request for a provision, and the PV's for
// a delete and an expand. An undo has the very request of the run that it undoes.
func (a *Actor) planOne(o *observe.Observation, d decide.Launch) (jobs.Plan, error) {
	p := jobs.Plan{
		Provisioner: a.Provisioner, Verb: d.Verb, LeftBehind: d.LeftBehind, Number: d.Number, Attempt: d.Attempt, After: d.After, NothingBefore: d.NothingBefore, AnyNode: d.AnyNode,
		KubeAPI: a.KubeAPI, Config: o.ConfigFor(d.Verb).Config, Taints: o.VolumeNode.Taints,
	}
	switch {
	case d.Verb == contract.Provision:
		a.planProvision(o, &p)
	case d.Undo:
		undone := o.View.MayHaveMade().Name // the Job of a batch may have another UID in its name
		request, pv, err := runs.ReadRequest(o.Jobs[undone].Spec.Template.Annotations, string(o.UID))
		if err != nil {
			return p, fmt.Errorf("read the request of the Job %s: %w", undone, err)
		}
		p.Request, p.PV = request, pv
		p.Request.Undo = true
	default:
		p.PV = o.PV
		p.Request = jobs.RequestOf(o.PV, p.Config)
		o.VolumeNode.SetOn(&p.Request)
		p.Request.Undo = d.NeverBound
	}
	p.Request.ClusterUID = a.ClusterUID // after the hash: it is no part of what the claim asks for
	if d.Verb == contract.Expand {
		p.Hash, p.Request.Size = o.View.Expand.Hash, o.Size.Value()
	}
	return p, nil
}

// planProvision completes the plan of a provision.
func (a *Actor) planProvision(o *observe.Observation, p *jobs.Plan) {
	p.Hash, p.Taints = o.View.Provision.Hash, o.SelectedNode.Taints
	if o.View.WhyRival != "" { // the record of the earlier run is released for this one
		p.Rival = o.Rival
	}
	if earlier := o.View.Newest(contract.Provision); earlier != nil && !p.NothingBefore {
		p.Since = earlier.Since
	}
	p.Request = jobs.Request(o.Claim, o.Provision.Class, p.Config)
	o.SelectedNode.SetOn(&p.Request)
	p.Request.Source = o.Provision.Source
	if a.TrustUsername {
		p.Request.Username, p.Request.Group = o.Claim.Annotations[jobs.AnnUsername], o.Claim.Annotations[jobs.AnnGroups]
	}
	p.PV = pvs.Skeleton(p.Request, p.Config, a.Provisioner)
	p.PV.Annotations[contract.AnnProvisionTS] = a.Clock.Now().UTC().Format(time.RFC3339)
}

// slotAfter is for how long a UID waits for a slot before that is reported.
const slotAfter = 5 * time.Minute

// awaitSlot adds a UID to the queue of its class. If all slots are used for a while, it reports by
// what. A slot that is never released once kept a class from all service, and no event said so
// (TestPodWithoutAJobOnALostNodeHoldsNoSlotForEver). A claim may also wait for the pace of its
// group, as an expand does after the write of its claim's status. An event must not say then that
// all slots are used (TestAnExpandInAnIdleClassIsNotToldThatItWaits).
func (a *Actor) awaitSlot(o *observe.Observation, d decide.AwaitSlot) Result {
	cfg, since := o.ConfigFor(d.Verb).Config, d.Due
	at := slots.KeyOf(cfg.Source)
	if since.IsZero() {
		since = requestedAt(o, d.Verb)
	}
	a.Slots.Await(at, slots.Waiter{
		Flow: slots.Flow{Namespace: o.At.Namespace, Verb: d.Verb}, UID: string(o.UID), Since: since, Limit: cfg.MaxParallel,
		Group: o.GroupOf(d.Verb, d.MayBatch), Batch: cfg.BatchOf(d.Verb), Start: o.StartOf(d.Verb), Behind: d.Behind != nil, Node: o.NodeOfCancelled(d.Verb),
	})
	switch told := since.Add(slotAfter); {
	case d.Behind != nil:
		a.reportProblem(o, *d.Behind)
	case a.Clock.Now().Before(told):
		return a.requeueAt(o.Earlier(told))
	case a.Slots.Used(at, cfg.MaxParallel) >= cfg.MaxParallel:
		holders := a.Slots.Holders(at, cfg.MaxParallel)
		note := reason.AllSlotsUsed(cfg.MaxParallel, cfg.Source.Class, holders)
		a.reportProblem(o, decide.Problem{Reason: reason.WaitingForSlot, Note: note})
	}
	return a.requeueAt(o.Earlier(a.Clock.Now().Add(repeatAfter)))
}

// requestedAt returns when the first run of a verb was asked for, as far as the objects show it.
func requestedAt(o *observe.Observation, verb contract.Verb) time.Time {
	switch {
	case verb == contract.Provision:
		return o.Claim.CreationTimestamp.Time
	case o.PV != nil && o.PV.Status.LastPhaseTransitionTime != nil:
		return o.PV.Status.LastPhaseTransitionTime.Time
	}
	var last time.Time
	for _, job := range o.Jobs {
		if job.CreationTimestamp.After(last) {
			last = job.CreationTimestamp.Time
		}
	}
	return last
}
