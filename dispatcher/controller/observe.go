package controller

import (
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// observation is what was found of one UID: the objects, and the view of them that decide judges.
type observation struct {
	uid   types.UID
	at    types.NamespacedName // where the claim is or was, if known
	claim *corev1.PersistentVolumeClaim
	pv    *corev1.PersistentVolume
	jobs  map[string]*batchv1.Job // by name
	view  decide.View

	serve, clean resolved

	// holder is the claim that the volume serves, nil where that is none or it is leaving; size is what
	// its volume is to have.
	holder *corev1.PersistentVolumeClaim
	size   resource.Quantity
}

// observe gathers all that is known of a UID through one looker. Classes, configs and revisions come
// from the caches always: they are the administrator's words, and a moment's delay does no harm.
func (c *Controller) observe(ctx context.Context, look looker, uid types.UID) (*observation, error) {
	o := &observation{uid: uid, jobs: map[string]*batchv1.Job{}}
	o.view.Now = c.clock.Now()
	if err := c.find(ctx, look, o); err != nil {
		return nil, err
	}
	volume, err := c.seeVolume(ctx, look, o)
	if err != nil {
		return nil, err
	}
	o.view.Volume = volume
	if o.view.Rival, err = c.seeStray(ctx, look, o); err != nil {
		return nil, err
	}
	o.view.Claim = c.seeClaim(o.claim, string(uid))
	if o.view.Claim == decide.ClaimPending {
		if o.serve, err = c.resolveServe(ctx, look, o.claim); err != nil {
			return nil, err
		}
		o.view.Provision = o.serve.target
	}
	o.clean = c.resolveClean(o)
	if err := c.seeGone(ctx, look, o); err != nil {
		return nil, err
	}
	o.view.Delete = o.clean.target
	if err := c.seeGrowth(ctx, look, o); err != nil {
		return nil, err
	}
	for i := range o.view.Runs {
		o.view.Runs[i].Reschedule = returned(o.jobs[o.view.Runs[i].Name], o.claim)
		o.view.Runs[i].Published = shown(o.claim, result(o.view.Runs[i], volume.Fits(), o.pv))
	}
	return o, nil
}

// find fetches the objects. The PV last: one written a moment ago must not be missed by a look at the
// Jobs that came later.
func (c *Controller) find(ctx context.Context, look looker, o *observation) (err error) {
	if err = c.findRuns(ctx, look, o); err != nil {
		return err
	}
	if o.pv, err = look.volume(ctx, contract.PVName(string(o.uid))); err != nil {
		return err
	}
	if o.pv != nil && o.pv.Spec.ClaimRef != nil && o.pv.Spec.ClaimRef.UID == o.uid {
		o.at = types.NamespacedName{Namespace: o.pv.Spec.ClaimRef.Namespace, Name: o.pv.Spec.ClaimRef.Name}
	}
	if o.claim, err = look.claim(ctx, o.uid, o.at); err != nil {
		return err
	}
	if o.claim != nil {
		o.at = types.NamespacedName{Namespace: o.claim.Namespace, Name: o.claim.Name}
	}
	return nil
}

func (c *Controller) findRuns(ctx context.Context, look looker, o *observation) error {
	all, err := look.jobs(ctx, o.uid)
	if err != nil {
		return err
	}
	for _, job := range all {
		run, err := c.seeRun(ctx, look, job, string(o.uid))
		if err != nil {
			return err
		}
		o.jobs[job.Name] = job
		o.view.Runs = append(o.view.Runs, run)
		if request, _, err := runs.RecordedRequest(job.Spec.Template.Annotations, string(o.uid)); err == nil {
			o.at = types.NamespacedName{Namespace: request.Namespace, Name: request.Name}
		}
	}
	return nil
}

func (c *Controller) seeRun(ctx context.Context, look looker, job *batchv1.Job, uid string) (decide.Run, error) {
	run := decide.Run{Name: job.Name, Record: runs.RecordOf(job, uid)}
	run.Terminating = job.DeletionTimestamp != nil
	if run.Recorded != nil {
		run.Outcome = *run.Recorded
		run.Short = run.Record.Short(run.Outcome)
		var err error
		run.PodKept, err = c.seeKept(ctx, look, job, run.Held)
		return run, err
	}
	pods, err := look.pods(ctx, job)
	if err != nil {
		return run, err
	}
	run.PodKept = slices.ContainsFunc(pods, runs.HasFinalizer)
	if run.Unfinished = !runs.Ended(job, pods, c.clock.Now()); run.Unfinished {
		return run, c.seeTrouble(ctx, &run, job, pods)
	}
	run.Outcome = runs.ReadFor(job, uid, pods, c.clock.Now())
	run.Output = output(job, run, pods)
	run.Short = run.Record.Short(run.Outcome)
	if run.DescribesPV && run.Verb == contract.Provision {
		_, run.Refused = c.offer(job, pods)
	}
	return run, nil
}

// output is what is told of a run on its Job: once, whichever of its claims settles first.
func output(job *batchv1.Job, run decide.Run, pods []*corev1.Pod) string {
	switch {
	case len(run.UIDs) < 2:
		return run.Outcome.Message
	case runs.AnyRecorded(job):
		return ""
	default:
		return runs.OutputOf(pods)
	}
}

// seeKept tells whether a settled Job has a pod that is still kept. With the record goes the last that would let
// it go, so the pods of a Job that holds one are looked at as the rest is: a cache may be behind.
func (c *Controller) seeKept(ctx context.Context, look looker, job *batchv1.Job, held bool) (bool, error) {
	if !held {
		look = c.caches
	}
	pods, err := look.pods(ctx, job)
	return slices.ContainsFunc(pods, runs.HasFinalizer), err
}

func (c *Controller) seeVolume(ctx context.Context, look looker, o *observation) (decide.Volume, error) {
	pv := o.pv
	if pv == nil {
		return decide.Volume{}, nil
	}
	v := decide.Volume{
		Exists:   true,
		UID:      string(pv.UID),
		Unproven:    c.faultOf(pv, string(o.uid)),
		Released: released(pv),
		PolicyDelete:  pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete,
		HasFinalizer:     slices.Contains(pv.Finalizers, contract.FinalizerStorage),
		Terminating:  pv.DeletionTimestamp != nil,
		Unbound:  pvs.IsUnbound(pv),
	}
	if pv.Annotations[contract.AnnClaimUID] == string(o.uid) {
		v.Mismatch, v.NeverBound = fit(pv, o.claim)
	}
	ref := pv.Spec.ClaimRef
	if !v.Released || ref == nil || ref.UID == "" {
		return v, nil // without a UID the PV has been handed to whoever has that name, whatever its phase still says
	}
	holder, err := look.claim(ctx, ref.UID, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	v.Orphaned = holder == nil || holder.Spec.VolumeName != "" && holder.Spec.VolumeName != pv.Name
	return v, err
}

// fit tells why a claim that waits can never be bound to its PV, and whether no claim ever can have been: of a PV
// without a claimRef that hangs on no claim.
func fit(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) (unfit string, loose bool) {
	switch {
	case claim != nil && claim.Spec.VolumeName == "":
		return pvs.Mismatch(pv, claim), pvs.NeverBound(pv, claim)
	case pv.Spec.ClaimRef == nil:
		return "", pvs.NeverBound(pv, nil)
	default:
		return "", false
	}
}

// faultOf is why a PV is no proof of a run of ours; empty: it is one. A PV of another provisioner is the
// business of that one's dispatcher alone: two would grow one volume, and tell its claim two stories.
func (c *Controller) faultOf(pv *corev1.PersistentVolume, uid string) string {
	if ofAnother(pv.Annotations, c.opts.Provisioner) {
		return fmt.Sprintf("the PersistentVolume %s is of the provisioner %s, by its annotation %s: this dispatcher serves %s",
			pv.Name, pv.Annotations[contract.AnnProvisionedBy], contract.AnnProvisionedBy, c.opts.Provisioner)
	}
	return pvs.Unproven(pv, uid)
}

func released(pv *corev1.PersistentVolume) bool {
	return pv.Status.Phase == corev1.VolumeReleased || pv.Status.Phase == corev1.VolumeFailed
}

// seeClaim: a claim is ours when its class names our provisioner, the PV controller has handed it to
// us, and, with WaitForFirstConsumer, a node is selected. The PV controller's annotation alone will not
// do: it stays when the node's is removed.
func (c *Controller) seeClaim(claim *corev1.PersistentVolumeClaim, uid string) decide.Claim {
	switch {
	case claim == nil:
		return decide.ClaimGone
	case claim.Spec.VolumeName == contract.PVName(uid):
		return decide.ClaimBound
	case claim.Spec.VolumeName != "":
		return decide.ClaimBoundElsewhere
	case claim.DeletionTimestamp != nil:
		return decide.ClaimTerminating
	case !c.asksUs(claim):
		return decide.ClaimNotOurs
	default:
		return decide.ClaimPending
	}
}

func (c *Controller) asksUs(claim *corev1.PersistentVolumeClaim) bool {
	asked := claim.Annotations[storagehelpers.AnnStorageProvisioner]
	if asked == "" {
		asked = claim.Annotations[storagehelpers.AnnBetaStorageProvisioner]
	}
	class := c.class(className(claim))
	if class == nil || class.Provisioner != c.opts.Provisioner || asked != c.opts.Provisioner || populated(claim) {
		return false
	}
	return !waits(class) || claim.Annotations[storagehelpers.AnnSelectedNode] != ""
}

// populated: a populator fills the claim, through a claim of its own.
func populated(claim *corev1.PersistentVolumeClaim) bool {
	ref := claim.Spec.DataSourceRef
	return ref != nil && ref.Kind != kindClaim && ref.Kind != kindSnapshot
}

func (c *Controller) class(name string) *storagev1.StorageClass {
	obj, found, err := c.caches.classes.GetByKey(name)
	if err != nil || !found {
		return nil
	}
	return obj.(*storagev1.StorageClass)
}

func className(claim *corev1.PersistentVolumeClaim) string {
	return storagehelpers.GetPersistentVolumeClaimClass(claim)
}
