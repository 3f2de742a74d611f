package run_test

import (
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// The event of the PersistentVolume is all that is seen of a deletion that waits. It names what an
// administrator has made beside Kubernetes.
func TestADeletionThatWaitsForSnapshotsSaysSo(t *testing.T) {
	w := newWorld(t)
	w.wantCode(t, w.provision(t), contract.ExitDone)
	id := w.cinder.AddSnapshot(w.cinder.Volumes()[0].ID)
	result := w.remove(t)
	user := contract.ForClaim(result.Message)
	if result.Code != contract.ExitTempFail || !strings.Contains(user, "a volume that has snapshots, and this one has "+id) ||
		!strings.Contains(result.Message, "Remedy: openstack volume snapshot delete "+id) {
		t.Errorf("exit code %d: %s", result.Code, result.Message)
	}
}
