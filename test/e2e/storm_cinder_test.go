//go:build e2e && storms

package e2e

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// forgetsAfter is how long Cinder has to have left a volume as it is.
const forgetsAfter = 90 * time.Second

// afterReset is what an administrator of Cinder says that a volume is, by what Cinder says that it
// is doing with it.
var afterReset = map[string]string{"creating": "error", "deleting": "error", "error_deleting": "error", "extending": "in-use", "detaching": "in-use"}

// since returns when Cinder has last written about the volume.
func (v stormVolume) since() (time.Time, error) {
	return time.Parse("2006-01-02T15:04:05.999999", cmp.Or(v.Updated, v.Created))
}

// resetStuckVolumes does what an administrator of Cinder has to, with or without Kubernetes: a
// Cinder that was killed in the middle of its work has forgotten some of it, and does nothing any
// more with such a volume.
func (s *storm) resetStuckVolumes(ctx context.Context, volumes map[string][]stormVolume) error {
	var errs []error
	for _, v := range slices.Concat(slices.Collect(maps.Values(volumes))...) {
		status, busy := afterReset[v.Status]
		since, err := v.since()
		if err != nil || !busy || time.Since(since) < forgetsAfter {
			errs = append(errs, err)
			continue
		}
		s.w.t.Logf("Cinder has forgotten the volume %s, which is %q since %s: an administrator sets it to %q", v.ID, v.Status, since, status)
		errs = append(errs, tellCinder(ctx, "/volumes/"+v.ID+"/action", map[string]any{"os-reset_status": map[string]string{"status": status}}))
	}
	return errors.Join(errs...)
}
