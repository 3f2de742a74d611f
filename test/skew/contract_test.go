package skew_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/test/invariants"
)

// aLaterRelease is an image of a later release: its results have fields that this dispatcher does
// not know, and it ends with a code that is new.
func aLaterRelease(r *fakecluster.Run) fakecluster.Exit {
	const newCode = 71
	if r.Verb == contract.Provision && r.Number == 1 {
		return fakecluster.Exit{Code: newCode, Message: "claim: of a later release"}
	}
	exit := fakecluster.Works(r)
	result, err := json.Marshal(map[string]any{"uid": r.Request.UID, "code": 0, "capacity": "2Gi", "tier": map[string]any{"name": "hot"}, "checkedAt": 1})
	if err != nil {
		panic(err)
	}
	exit.Message = string(result) + "\n"
	return exit
}

func TestAnImageOfALaterReleaseIsServed(t *testing.T) {
	t.Parallel()
	for name, keys := range map[string][]string{"alone": nil, "batch": {"batch-size", "8"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := story{name: name, does: aLaterRelease, keys: append([]string{"verbs", "provision,delete,expand"}, keys...)}
			inWorld(t, s, func(w *world) {
				w.setUp()
				w.CreateClaim("data-1")
				w.CreateClaim("data-2")
				w.Until("all are bound", time.Hour, func() bool { return w.isAtRest() && w.AllBound() })
				w.MustContain("PersistentVolumeClaim/data-1", "ProvisioningFailed", []string{"of a later release"})
				w.checkRest()
				w.endAll()
				invariants.Check(w.Cluster)
			})
		})
	}
}
