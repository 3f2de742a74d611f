package controller_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// A csi-resizer takes every PV of its CSI driver. The claim says that no run has refused it, and the
// volume grows all the same. No csi-resizer takes a PV of another kind.
func TestARefusalOfAnotherResizerIsReportedAndDoesNotEndAnExpansion(t *testing.T) {
	for name, test := range map[string]struct {
		as     func(*corev1.PersistentVolume)
		failed int
		says   string
	}{
		"CSI":   {asCSI, 2, "no run of the dispatcher has said so that is still on record"},
		"local": {asLocal, 1, "busy"},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpExpandableGold(func(r *fakecluster.Run) fakecluster.Exit {
					if r.Verb != contract.Expand || r.Number > 1 {
						return making(test.as)(r)
					}
					fakecluster.Update(w, fakecluster.Kubelet, w.Claim("data"), func(claim *corev1.PersistentVolumeClaim) {
						claim.Status.AllocatedResourceStatuses = map[corev1.ResourceName]corev1.ClaimResourceStatus{corev1.ResourceStorage: infeasible}
					})
					return fakecluster.Fails(75, "claim: busy")(r)
				})
				w.Start()
				w.provisioned("data")
				w.Mounted["data"] = true
				w.requestSize("2Gi")
				w.Until("the claim has its size", time.Minute, w.hasSize("2Gi"))
				said := w.Events.About(onData, "VolumeResizeFailed")
				if len(said) != test.failed || !strings.Contains(said[test.failed-1].Note, test.says) {
					w.T.Errorf("the events are %+v, want %d, the last one with %q", said, test.failed, test.says)
				}
				w.MustRun("provision", "expand", "expand")
			})
		})
	}
}
