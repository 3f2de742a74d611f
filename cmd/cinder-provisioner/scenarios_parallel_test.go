package main

import (
	"fmt"
	"sync"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Thirty runs in parallel make thirty volumes, which Cinder counts exactly against the quota.
// Thirty deletes in parallel leave nothing to count.
func TestThirtyProcessesInParallel(t *testing.T) {
	eachCinder(t, func(t *testing.T, s store) {
		t.Helper()
		const claims = 30
		volumes, gib := s.usage(t)
		rigs, uids := make([]*rig, claims), make([]string, claims)
		for i := range rigs {
			rigs[i] = newRig(t, s, "auto")
			uids[i] = rigs[i].uid
		}
		atOnce(t, rigs, contract.Provision)
		if n := s.volumes(t, uids...); n != claims {
			t.Errorf("%d volumes of %d claims", n, claims)
		}
		for _, r := range rigs {
			r.count(0, 1)
		}
		s.wantUsage(t, volumes+claims, gib+claims)
		atOnce(t, rigs, contract.Delete)
		if n := s.volumes(t, uids...); n != 0 {
			t.Errorf("%d volumes are left", n)
		}
		s.wantUsage(t, volumes, gib)
	})
}

// atOnce executes a verb for every claim in parallel.
func atOnce(t *testing.T, rigs []*rig, verb contract.Verb) {
	t.Helper()
	codes := make([]int, len(rigs))
	var all sync.WaitGroup
	for i, r := range rigs {
		all.Go(func() { codes[i] = r.run(verb) })
	}
	all.Wait()
	for i, code := range codes {
		if code != contract.ExitDone {
			t.Errorf("%s of claim %d ended with %d: %s", verb, i, code, rigs[i].said.String())
		}
	}
}

func (s store) wantUsage(t *testing.T, volumes, gib int) {
	t.Helper()
	gotVolumes, gotGiB := s.usage(t)
	if got, want := fmt.Sprint(gotVolumes, gotGiB), fmt.Sprint(volumes, gib); got != want {
		t.Errorf("Cinder counts %s volumes and GiB of the quota, want %s", got, want)
	}
}
