package controller_test

import (
	"fmt"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// memoryOf returns a pod-template that sets resources of the container.
func memoryOf(resources string) string {
	return fmt.Sprintf("spec: {containers: [{name: provisioner, resources: {%s}}]}", resources)
}

// The event about a run that needed more memory says to raise the limit in the ConfigMap. A volume
// stays with the revision that made it, and would never be deleted if the limit of that revision
// held for ever.
func TestADeleteUnderAnOlderRevisionHasTheMemoryLimitOfToday(t *testing.T) {
	for name, tt := range map[string]struct {
		before, after string
		limit         string
		request       string
	}{
		"none, and one is set":            {"", memoryOf("limits: {memory: 1Gi}"), "1Gi", "0"},
		"it is raised":                    {memoryOf("limits: {memory: 64Mi}"), memoryOf("limits: {memory: 1Gi}"), "1Gi", "0"},
		"it is lowered under the request": {memoryOf("requests: {memory: 128Mi}"), memoryOf("limits: {memory: 64Mi}"), "64Mi", "0"},
		"none is set any more":            {memoryOf("limits: {memory: 1Gi}"), "", "256Mi", "0"},
		"of a config that has a fault":    {"", memoryOf("limits: {memory: 1Gi}") + "x", "256Mi", "0"},
	} {
		for _, undo := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, an undo %t", name, undo), func(t *testing.T) {
				inWorld(t, func(w *world) {
					does := fakecluster.Works
					if undo {
						does = fakecluster.Always(fakecluster.Halfway(75))
					}
					w.SetUpGold(does, "pod-template", tt.before)
					w.Start()
					claim := w.CreateClaim("data")
					w.Advance(time.Minute)
					fakecluster.Delete(w, fakecluster.User, claim)
					w.UpdateConfig("pod-template", tt.after)
					w.Until("nothing is left", 10*time.Minute, w.Empty)
					all := w.CreatedJobs(contract.Delete)
					if len(all) != 1 {
						w.T.Fatalf("%d deletes", len(all))
					}
					got := all[0].Now.(*batchv1.Job).Spec.Template.Spec.Containers[0].Resources
					if limit, request := got.Limits[corev1.ResourceMemory], got.Requests[corev1.ResourceMemory]; limit.String() != tt.limit || request.String() != tt.request {
						w.T.Errorf("the limit is %s, the request %s", limit.String(), request.String())
					}
				})
			})
		}
	}
}
