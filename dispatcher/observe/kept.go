package observe

import (
	"context"
	"slices"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// observeKept notes until when the volume of a released PV waits for its delete. A value that cannot
// be read is a problem: without it the volume would be deleted at once. A volume whose claim is bound
// to another one has no data.
func (b *Observer) observeKept(_ context.Context, _ cluster.Reader, o *Observation) error {
	vol, t := &o.View.Volume, &o.Delete.Target
	if vol.Use != decide.Released || o.View.Claim == decide.ClaimBoundElsewhere || !vol.PolicyDelete || t.Problem != nil || o.isDeleteBegun() {
		return nil
	}
	keep, fault := b.KeepDeleted(o.Delete.Config)
	if fault != nil {
		t.Problem = decide.Problemf(reason.InvalidConfig, "the volume is not deleted, since the config of the class %s does not say how long it is kept: %v",
			o.Delete.Config.Source.Class, fault).Remedyf("correct the key in the ConfigMap")
		o.View.Delete = *t
		return nil
	}
	until := o.ReleasedAt().Add(keep)
	switch {
	case !o.View.Now.Before(until):
	case pvs.IsEmptied(o.PV):
		o.Early = "an administrator has emptied the trash"
	default:
		vol.KeptUntil = until
	}
	return nil
}

// isDeleteBegun reports whether a delete of the PV's volume was launched, and the PV deleted for it:
// no claim can have the volume any more.
func (o *Observation) isDeleteBegun() bool {
	return o.View.Volume.Terminating && slices.ContainsFunc(o.View.Runs, func(r decide.Run) bool {
		return r.Verb == contract.Delete && r.Volume == o.View.Volume.UID
	})
}

// ReleasedAt returns since when a PV is released. The API server writes it (PrepareForUpdate of
// pkg/registry/core/persistentvolume/strategy.go). A PV that was released before Kubernetes wrote it
// counts as released now, and is kept.
func (o *Observation) ReleasedAt() time.Time {
	if at := o.PV.Status.LastPhaseTransitionTime; at != nil {
		return at.Time
	}
	return o.View.Now
}
