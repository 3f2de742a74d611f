package observe

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// observeKept notes until when the volume of a released PV waits for its delete. A value that cannot
// be read is a problem: without it the volume would be deleted at once.
func (b *Observer) observeKept(_ context.Context, _ cluster.Reader, o *Observation) error {
	vol, t := &o.View.Volume, &o.Delete.Target
	if vol.Use != decide.Released || !vol.PolicyDelete || t.Problem != nil || o.View.IsDeleteBegun() || o.isSpare() {
		return nil
	}
	trash, fault := b.Trash(o.Delete.Config)
	if fault != nil {
		t.Problem = decide.Problemf(reason.InvalidConfig, "the volume is not deleted, since the config of the class %s does not say how long it is kept: %v",
			o.Delete.Config.Source.Class, fault).Remedyf("correct the key in the ConfigMap")
		o.View.Delete = *t
		return nil
	}
	until := o.byAPIServer(o.ReleasedAt().Add(trash.Keep))
	switch {
	case !o.View.Now.Before(until):
	case pvs.IsEmptied(o.PV):
		o.Early = "an administrator has emptied the trash"
	case b.exceedsLimit(o.PV, trash):
		o.Early = fmt.Sprintf("with those of the namespace %s that were released later, "+
			"its bytes exceed keep-deleted-limit: %s (a smaller volume counts as 1Gi)",
			o.PV.Spec.ClaimRef.Namespace, Bytes(trash.Limit))
	default:
		vol.KeptUntil, o.KeepLimit = until, trash.Limit
	}
	return nil
}

// timeUnit is the unit in which the API server writes times: it cuts off the rest.
const timeUnit = time.Second

// byAPIServer returns from when on a delete is due, as this clock has it. The API server writes
// when a PV was released and when a Job was created. A delete whose Job is older than the time that
// is due was launched by a clock that is ahead, and is not due. The next one is due when as much
// time has passed, by any clock, as the first was too early. A clock that is ahead by less than
// timeUnit once had each delete launched twice (TestAClockThatIsALittleAheadLaunchesADeleteOnce).
func (o *Observation) byAPIServer(due time.Time) time.Time {
	d := o.View.Newest(contract.Delete)
	switch {
	case d == nil || d.Volume != o.View.Volume.UID || !d.Created.Before(due.Add(-timeUnit)) ||
		d.Created.Before(o.ReleasedAt()):
		return due
	case d.Unfinished:
		return o.View.Now.Add(due.Sub(d.Created))
	default:
		return d.Outcome.Finished.Add(due.Sub(d.Created))
	}
}

// isSpare reports whether no claim got the volume, since its own was bound to another one. It has no
// data.
func (o *Observation) isSpare() bool {
	return o.View.Claim == decide.ClaimBoundElsewhere && o.PV.Spec.ClaimRef.UID == o.UID
}

// observeTrash notes what the deletes of volumes that wait would free, if a run has found no room.
func (b *Observer) observeTrash(_ context.Context, _ cluster.Reader, o *Observation) error {
	full := func(r decide.Run) bool { return r.Outcome.Verdict == contract.NoCapacity }
	if i := slices.IndexFunc(o.View.Runs, full); i >= 0 {
		o.Trash = b.Kept(pvs.TrashOfClass(o.View.Runs[i].Class))
	}
	return nil
}

// FullTrash returns what the trash has to do with a run that has found no room, and whether it has.
func (o *Observation) FullTrash(out runs.Outcome) (reason.Note, bool) {
	return reason.FullTrash(Bytes(o.Trash.Bytes)), out.Verdict == contract.NoCapacity && o.Trash.Volumes > 0
}

// exceedsLimit reports whether the limit of the trash makes the delete of a PV's volume due. What
// is beside it is what the cache shows. An older cache shows what was true at one time, and the PV
// has not changed since: its delete is confirmed with its version.
func (b *Observer) exceedsLimit(pv *corev1.PersistentVolume, trash config.Trash) bool {
	if trash.Limit == 0 {
		return false
	}
	isIt := func(due *corev1.PersistentVolume) bool { return due.Name == pv.Name }
	return slices.ContainsFunc(pvs.BeyondLimit(b.trashed(pvs.TrashOf(pv)), trash.Limit), isIt)
}

// trashed returns the volumes that wait for their delete, as the index has them. That of a claim
// which still exists does not: the claim was bound to another.
func (b *Observer) trashed(key string) []*corev1.PersistentVolume {
	isNone := func(pv *corev1.PersistentVolume) bool {
		return pvs.OfAnotherProvisioner(pv.Annotations, b.Provisioner) ||
			b.Caches.ClaimOf(pv.Spec.ClaimRef.UID) != nil
	}
	return slices.DeleteFunc(b.Caches.PVs.By(cluster.ByTrash, key), isNone)
}

// DueBeside returns the volumes that the limit makes due, of those that wait beside that of a PV.
func (b *Observer) DueBeside(pv *corev1.PersistentVolume) []*corev1.PersistentVolume {
	trash, fault := b.Trash(b.Delete("", pv.Annotations[contract.AnnRevision]).Config)
	if fault != nil || trash.Limit == 0 {
		return nil
	}
	return pvs.BeyondLimit(b.trashed(pvs.TrashOf(pv)), trash.Limit)
}

// Kept are volumes that wait for their delete.
type Kept struct{ Volumes, Bytes int64 }

// Kept returns the volumes that wait for their delete, as the index has them.
func (b *Observer) Kept(key string) (out Kept) {
	kept := map[string]time.Duration{} // by the revision
	for _, pv := range b.trashed(key) {
		revision := pv.Annotations[contract.AnnRevision]
		if _, known := kept[revision]; !known {
			trash, fault := b.Trash(b.Delete("", revision).Config)
			if kept[revision] = trash.Keep; fault != nil {
				kept[revision] = math.MaxInt64 // as long as it is not corrected
			}
		}
		if b.Clock.Now().Before(releasedAt(pv, b.Clock.Now()).Add(kept[revision])) {
			out.Volumes, out.Bytes = out.Volumes+1, out.Bytes+pvs.BytesOf(pv)
		}
	}
	return out
}

// reportReserved is how long no event says that a PV waits for a claim: an undelete reserves it, and
// creates the claim with its next request.
const reportReserved = time.Minute

// whyReserved returns the problem that a PV waits for a claim of a name, or nil. That a PV no longer
// is Released is what the volume controller makes of the reservation.
func (b *Observer) whyReserved(pv *corev1.PersistentVolume) *decide.Problem {
	if !pvs.IsReserved(pv) || pv.DeletionTimestamp != nil {
		return nil
	}
	since := b.Clock.Now()
	if at := pv.Status.LastPhaseTransitionTime; at != nil && !pvs.IsReleased(pv) {
		since = at.Time
	}
	claim := pv.Spec.ClaimRef.Namespace + "/" + pv.Spec.ClaimRef.Name
	note := reason.Reserved(quote.Command("kubectl", "flex", "undelete", pv.Name, "--to="+claim))
	return &decide.Problem{
		Reason: reason.VolumeInDoubt, Note: note.After("%s, ", pvs.Unclaimed(pv)),
		From: since.Add(reportReserved),
	}
}

// ReleasedAt returns since when the PV is released.
func (o *Observation) ReleasedAt() time.Time { return releasedAt(o.PV, o.View.Now) }

// releasedAt returns since when a PV is released. The API server writes it (PrepareForUpdate of
// pkg/registry/core/persistentvolume/strategy.go). A PV that was released before Kubernetes wrote it
// counts as released now, and is kept.
func releasedAt(pv *corev1.PersistentVolume, now time.Time) time.Time {
	if at := pv.Status.LastPhaseTransitionTime; at != nil {
		return at.Time
	}
	return now
}

// Bytes returns a number of bytes as people write it.
func Bytes(n int64) string { return resource.NewQuantity(n, resource.BinarySI).String() }
