package observe

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/resolve"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// Observer observes UIDs.
type Observer struct {
	resolve.Resolver
	Clock clock.PassiveClock
	// AheadOfBinder lets claims be served before the PV controller has asked for their volumes.
	AheadOfBinder bool
}

// Observation is everything that was found of one UID.
type Observation struct {
	UID   types.UID
	At    types.NamespacedName // where the claim is or was, if known
	Claim *corev1.PersistentVolumeClaim
	PV    *corev1.PersistentVolume
	// Misnamed is a PV of the UID under another name, if our finalizer is to be removed from one.
	Misnamed *corev1.PersistentVolume
	// Rival names the PV that may stand for the UID's volume and proves no run, or did. It is empty
	// if there is none.
	Rival string
	Jobs  map[string]*batchv1.Job  // by name
	Pods  map[string][]*corev1.Pod // by the Job's name; without a name those whose Job no longer exists
	// read has the Job and the pods of each run, in their order: two namespaces may have Jobs of
	// one name. cached has the UID's pods as the cache showed them before the PV was read.
	read   []jobWithPods
	cached []*corev1.Pod
	// LeftPod is the pod of View.LeftPod, or nil. RecheckAt is when to look again for what nothing
	// but time ends, zero if there is nothing of the kind.
	LeftPod   *corev1.Pod
	RecheckAt time.Time
	// Forged says why no PV is created from what a Job has on record, by the Job's name.
	Forged map[string]string
	// Early is why the volume of a released PV is deleted before its config says, empty if it is
	// not. KeepLimit is the limit of what is kept beside one that waits, zero for none.
	Early     string
	KeepLimit int64
	// Trash are the deleted volumes of the claim's class that wait, if a run has found the storage
	// full.
	Trash Kept
	// HistoryFull is set for each Job, by name, whose class has runs.MaxHistory failed Jobs.
	HistoryFull map[string]bool
	View        decide.View
	// Provision and Delete are the configs under which a pending claim would be provisioned and a
	// volume deleted.
	Provision, Delete resolve.Resolved
	// Holder is the claim that is bound to the PV, nil if there is none or it is terminating. Size
	// is the size that its volume is to have.
	Holder *corev1.PersistentVolumeClaim
	Size   resource.Quantity
	// SelectedNode is where a pending claim is to be provisioned. VolumeNode is where its volume
	// is, or may have been made, as far as claim, PV and the newest run say.
	SelectedNode, VolumeNode resolve.NodeTopology
	// NextRevision is the number under which the config of a pending claim would be stored.
	// StoredRevision is the stored one, or nil.
	NextRevision   int64
	StoredRevision *appsv1.ControllerRevision
}

// Observe collects everything that is known of a UID through one reader. Classes, configs and
// revisions always come from the caches: administrators write them, and a moment's delay does no
// harm.
func (b *Observer) Observe(ctx context.Context, reader cluster.Reader, uid types.UID, hint Hint) (*Observation, error) {
	o := &Observation{UID: uid, Jobs: map[string]*batchv1.Job{}, Pods: map[string][]*corev1.Pod{}, Forged: map[string]string{}, HistoryFull: map[string]bool{}}
	o.View.Now = b.Clock.Now()
	for _, step := range []func(context.Context, cluster.Reader, *Observation) error{
		b.readObjects, b.observePV, b.observeRuns, b.observeForged, b.observeRival, b.observeClaim, b.observeDelete, b.observeKept, b.observeTrash, b.observeResize, b.observeProbes,
	} {
		if err := step(ctx, reader, o); err != nil {
			return nil, err
		}
	}
	o.View.Contested = o.isHandedOver() || b.isContested(o)
	o.apply(hint)
	return o, nil
}

// isHandedOver reports whether the PV's phase may be that of another claim's volume.
func (o *Observation) isHandedOver() bool {
	pv := o.PV
	return pv != nil && (pv.Status.Phase == corev1.VolumeFailed || pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID != o.UID)
}

// isContested reports whether Jobs of the UID may be in more than one namespace: its class has its
// config in several, or had, or was created anew.
func (b *Observer) isContested(o *Observation) bool {
	if len(b.Caches.Namespaces()) < 2 {
		return false
	}
	var name string
	switch {
	case o.Claim != nil:
		name = storagehelpers.GetPersistentVolumeClaimClass(o.Claim)
	case o.PV != nil:
		name = o.PV.Spec.StorageClassName
	default:
		return true
	}
	class := b.Caches.Classes.Named(name)
	renewed := o.Claim != nil && class != nil && resolve.IsRenewed(class, o.Claim)
	return renewed || len(b.Caches.NamespacesOfClass(config.ClassLabel(name))) > 1
}

// apply completes the runs with what claim, PV and hint say about them.
func (o *Observation) apply(hint Hint) {
	if target := &o.View.Provision; target.Problem == nil && o.StoredRevision == nil && target.Revision != "" && target.Revision == hint.UnseenRevision {
		target.Problem = unseenRevision(target.Revision, hint.UnseenFrom)
	}
	o.View.NotBefore, o.View.NoReturnBefore, o.View.Refused = hint.NotBefore, hint.NoReturnBefore, hint.Refused
	o.View.Volume.RecordReleased = hint.RecordReleasedOf != "" && hint.RecordReleasedOf == o.View.Volume.UID
	fits := o.View.Volume.State == decide.Fits
	for i := range o.View.Runs {
		r := &o.View.Runs[i]
		r.Reschedule = rescheduleStage(r.Record.Record, o.Claim)
		refused := r.Name == hint.Unpublishable && hint.Success == fits
		r.Published = refused || runs.IsReported(o.Claim, runs.Report(r.Attempt, r.Outcome, fits, o.PV))
		if r.Name == hint.NoPVOf {
			r.WhyNoPV = hint.WhyNoPV
		}
	}
}

// readObjects reads the objects. The PV is read after the Jobs and the pods. Otherwise a run, or a
// pod without a Job, could be seen as ended while the PV that it wrote a moment ago was missed. The
// Jobs say where the claim is, and the PV only without them. A thief of the pod's token once wrote
// another name into the PV's claimRef, and the claim counted as one that no longer exists
// (TestTheRecordIsHeldWhereAForgedPVNamesAnotherClaim).
func (b *Observer) readObjects(ctx context.Context, reader cluster.Reader, o *Observation) (err error) {
	if err = b.readRuns(ctx, reader, o); err != nil {
		return err
	}
	if o.PV, err = reader.PV(ctx, contract.PVName(string(o.UID))); err != nil {
		return err
	}
	if o.At.Name == "" && o.PV != nil && o.PV.Spec.ClaimRef != nil && o.PV.Spec.ClaimRef.UID == o.UID {
		o.At = types.NamespacedName{Namespace: o.PV.Spec.ClaimRef.Namespace, Name: o.PV.Spec.ClaimRef.Name}
	}
	if o.Claim, err = reader.Claim(ctx, o.UID, o.At); err != nil {
		return err
	}
	if o.Claim != nil {
		o.At = types.NamespacedName{Namespace: o.Claim.Namespace, Name: o.Claim.Name}
	}
	return err
}

// jobWithPods is a Job and its pods and, if one is gated, its own and those of all its claims as
// the cache shows them.
type jobWithPods struct {
	job          *batchv1.Job
	pods, cached []*corev1.Pod
}

func (b *Observer) readRuns(ctx context.Context, reader cluster.Reader, o *Observation) error {
	all, err := reader.Jobs(ctx, o.UID)
	if err != nil {
		return err
	}
	for _, job := range all {
		run := recordedRun(o.UID, job)
		pods, err := b.readerOf(reader, &run).Pods(ctx, job)
		if err != nil {
			return err
		}
		read := jobWithPods{job: job, pods: pods}
		if runs.GatedPod(pods) != nil {
			read.cached = append(b.Caches.PodsOf(job), b.podsOf(run.UIDs...)...)
		}
		o.Jobs[job.Name], o.Pods[job.Name], o.read = job, pods, append(o.read, read)
		if run.Record.Name != "" {
			o.At = types.NamespacedName{Namespace: run.Namespace, Name: run.Record.Name}
		}
		o.View.Runs = append(o.View.Runs, run)
	}
	o.cached = b.podsOf(string(o.UID))
	return nil
}

// podsOf returns the pods of claims, as the cache shows them.
func (b *Observer) podsOf(uids ...string) (out []*corev1.Pod) {
	for _, uid := range uids {
		out = append(out, b.Caches.Pods.By(cluster.ByUID, uid)...)
	}
	return out
}

// observeRuns judges the runs. The PV was judged before: it proves what the container that wrote it
// says.
func (b *Observer) observeRuns(ctx context.Context, reader cluster.Reader, o *Observation) error {
	for i := range o.View.Runs {
		run := &o.View.Runs[i]
		if err := b.observeRun(ctx, b.readerOf(reader, run), o, run, o.read[i]); err != nil {
			return err
		}
	}
	return b.readOrphans(ctx, reader, o)
}

// readOrphans finds the pods of the UID whose Jobs no longer exist: those that have ended and are
// kept, and one that has not, which is reported. So is one on a lost node whose run has ended.
func (b *Observer) readOrphans(ctx context.Context, reader cluster.Reader, o *Observation) error {
	for _, pod := range o.cached {
		if job := o.Jobs[pod.Labels[batchv1.JobNameLabel]]; job != nil && runs.IsPodOf(pod, job) {
			if err := b.observeLost(ctx, reader, o, pod, job); err != nil {
				return err
			}
			continue
		}
		end, err := b.endOf(ctx, reader, pod)
		switch {
		case err != nil:
			return err
		case end.mayRun:
			b.observeLeft(o, pod, end)
		case runs.HasFinalizer(pod):
			o.Pods[""] = append(o.Pods[""], pod)
		}
	}
	o.View.OrphanPod = len(o.Pods[""]) > 0
	return nil
}

// MayOrphanHaveLeft reports whether a pod whose Job no longer exists may have made volumes to which
// no record leads: another client removed it. A later run may find the volume of its claim, and may
// as well end before it has looked.
func (o *Observation) MayOrphanHaveLeft(pod *corev1.Pod) bool {
	if pod.Labels[jobs.LabelVerb] != string(contract.Provision) || !runs.HasStarted([]*corev1.Pod{pod}) {
		return false
	}
	return len(jobs.UIDsOfPod(pod)) > 1 || o.PV == nil || o.PV.Annotations[contract.AnnRevision] != pod.Annotations[contract.AnnRevision]
}

// observeLost notes that a pod may run on a lost node although its Job's run has ended, as that of
// an expand has with its container. A run that was launched beside it would wait at its gate until
// it is cancelled, and be launched again, and so would the other claims of its batch.
func (b *Observer) observeLost(ctx context.Context, reader cluster.Reader, o *Observation, pod *corev1.Pod, job *batchv1.Job) error {
	ended := func(r decide.Run) bool { return r.Name == job.Name && r.State() >= decide.RunEnded }
	if !slices.ContainsFunc(o.View.Runs, ended) {
		return nil
	}
	end, err := b.endOf(ctx, reader, pod)
	if err != nil || !end.mayRun {
		return err
	}
	lost, err := lostNode(ctx, reader, pod.Spec.NodeName)
	if lost != "" {
		o.LeftPod, o.View.LeftPod = pod, &decide.Problem{Reason: reason.WaitingForNode, Note: reason.LostNode("the pod "+pod.Name, lost)}
	}
	return err
}

// observeLeft notes that a pod may run whose Job no longer exists. It holds a slot of its class.
func (b *Observer) observeLeft(o *Observation, pod *corev1.Pod, end podEnd) {
	stuck, recheck := runs.LeftStuck(pod, end.until, end.lostNode, b.Clock.Now())
	if stuck != nil {
		o.LeftPod, o.View.LeftPod = pod, &decide.Problem{Reason: stuck.Reason, Note: stuck.Note}
	}
	o.RecheckAt = o.Earlier(recheck)
}

// Earlier returns a time or, if that is earlier, RecheckAt. Zero is none.
func (o *Observation) Earlier(at time.Time) time.Time {
	if at.IsZero() || !o.RecheckAt.IsZero() && o.RecheckAt.Before(at) {
		return o.RecheckAt
	}
	return at
}
