//go:build e2e

package e2e

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// While a Job cannot start the claim says why, within 30 s. When the claim is deleted, a Job whose
// container was never made needs no undo: the image could not start for an undo either.
func TestClaimSaysWhyItsJobDoesNotStart(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		config map[string]string
		reason string
		words  []string
	}{
		"image": {map[string]string{"image": "localhost/no-such-image:dev", "image-pull-policy": "Never"}, "ErrImageNeverPull", []string{"no-such-image", "correct the key image"}},
		"env":   {map[string]string{"env-from-secret": "no-such-secret"}, "CreateContainerConfigError", []string{`"no-such-secret" not found`, "correct env-from-secret"}},
		"files": {map[string]string{"files-from-secret": "no-such-secret"}, "FailedMount", []string{`"no-such-secret" not found`, "correct files-from-secret"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "start-"+name)
			claim := w.claim(w.cinderService(tt.config), "data")
			w.event(claim, tt.reason, tt.words...)
			w.deleteClaim(claim)
			w.vanished(claim)
			if undone := w.jobs(claim, "delete"); len(undone) > 0 {
				t.Errorf("undone: %v", names(undone))
			}
		})
	}
}

// A selector that no node fits is quoted. When the config is corrected the Job that could not start
// is deleted at once, and no undo is tried on nodes that do not exist.
func TestClaimSaysThatNoNodeFits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "node")
	claim := w.claim(w.cinderService(map[string]string{"node-selector": "disk=none"}), "data")
	w.event(claim, "Unschedulable", "disk=none", "correct node-selector")
	cm, err := kube.CoreV1().ConfigMaps(ownNamespace).Get(w.ctx(), w.ns, metav1.GetOptions{})
	w.must(err, "look at the config")
	cm.Data = cinderConfig(nil)
	_, err = kube.CoreV1().ConfigMaps(ownNamespace).Update(w.ctx(), cm, metav1.UpdateOptions{})
	w.must(err, "correct the config")
	w.bound(claim)
	w.onlyVolume(claim)
	if undone := w.jobs(claim, "delete"); len(undone) > 0 {
		t.Errorf("undone: %v", names(undone))
	}
}

// A ServiceAccount without the label is refused.
func TestClaimSaysThatItsServiceAccountIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "account")
	claim := w.claim(w.cinderService(map[string]string{"service-account-name": "default"}), "data")
	w.event(claim, "ServiceAccountRefused", "default", "flex-provisioner.io/provisioner=true")
	if jobs := w.jobs(claim, ""); len(jobs) > 0 {
		t.Errorf("Jobs: %v", names(jobs))
	}
}
