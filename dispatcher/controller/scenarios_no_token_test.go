package controller_test

import (
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// A policy takes the token of a pod. The event of the claim once blamed the image for ever.
func TestAClaimSaysWhichFieldTookTheTokenOfItsPod(t *testing.T) {
	for name, tt := range map[string]struct {
		policy func(fakecluster.Object)
		says   string
	}{
		"no policy": {func(fakecluster.Object) {}, "as the image must do from"},
		"on Jobs": {
			func(obj fakecluster.Object) {
				if job, is := obj.(*batchv1.Job); is {
					job.Spec.Template.Spec.AutomountServiceAccountToken = new(false)
				}
			},
			"no token for the API server, since the Job has automountServiceAccountToken: false",
		},
		"on pods": {
			func(obj fakecluster.Object) {
				if pod, is := obj.(*corev1.Pod); is {
					pod.Spec.AutomountServiceAccountToken = new(false)
					pod.Spec.Containers[0].VolumeMounts = nil
				}
			},
			"no token for the API server, since the pod has automountServiceAccountToken: false",
		},
		"on mounts": {
			func(obj fakecluster.Object) {
				if pod, is := obj.(*corev1.Pod); is {
					pod.Spec.Containers[0].VolumeMounts = nil
				}
			},
			"no token for the API server, since its container mounts nothing at /var/run/secrets",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(fakecluster.Always(fakecluster.Fails(0, "")))
				w.Server.Refuse(func(_, verb string, obj fakecluster.Object) error {
					if verb == "create" {
						tt.policy(obj)
					}
					return nil
				})
				w.Start()
				w.CreateClaim("data")
				w.Advance(time.Minute)
				emitted := w.Events.About(onData, "ProvisioningFailed")
				if len(emitted) == 0 || !strings.Contains(emitted[0].Note, tt.says) {
					w.T.Errorf("the events say: %+v", emitted)
				}
			})
		})
	}
}
