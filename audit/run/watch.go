package run

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/audit"
)

// Watch looks again and again until ctx ends, with a pause between two looks. It keeps the gauges
// up to date, and logs each finding once.
func (a *Auditor) Watch(ctx context.Context, of Storages, pause time.Duration, gauges *Gauges) {
	var before []audit.Finding
	for ctx.Err() == nil {
		if l, err := a.Look(ctx, of); err == nil {
			logNew(ctx, l, before)
			gauges.set(l, a.Clock.Now())
			before = known(l, before)
		} else if !errors.Is(err, context.Canceled) {
			klog.FromContext(ctx).Error(err, "Failed to audit")
		}
		select {
		case <-ctx.Done():
		case <-a.Clock.After(pause):
		}
	}
}

// known returns the findings that need not be logged again. Those of a storage that could not be
// listed may be among the earlier ones.
func known(l Look, before []audit.Finding) []audit.Finding {
	if len(l.Faults) == 0 {
		return l.Found
	}
	return slices.Concat(l.Found, audit.New(before, l.Found))
}

// logNew logs what was not found before, and which storages could not be listed.
func logNew(ctx context.Context, l Look, before []audit.Finding) {
	log := klog.FromContext(ctx)
	for _, f := range audit.New(l.Found, before) {
		log.Info("Found a fault", "kind", f.Kind, "object", f.Object, "class", f.Class, "bytes", f.Size, "why", f.Why, "fix", f.Fix)
	}
	for _, fault := range l.Faults {
		log.Error(fault, "Failed to list a storage")
	}
}
