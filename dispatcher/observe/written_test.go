package observe

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

func TestARunThatWroteItsPVEndsWithItsContainer(t *testing.T) {
	unbound, bound := fixture.Claim(), fixture.Claim()
	bound.Status.Phase = corev1.ClaimBound
	exited := func(code int32) []*corev1.Pod {
		state := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code}}
		return []*corev1.Pod{{Status: corev1.PodStatus{
			Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{{Name: contract.Container, State: state}},
		}}}
	}
	over := exited(0)
	over[0].Status.Phase = corev1.PodSucceeded
	for name, tt := range map[string]struct {
		state decide.State
		claim *corev1.PersistentVolumeClaim
		pods  []*corev1.Pod
		uids  string
		want  bool
	}{
		"its claim is bound":     {decide.Fits, bound, exited(0), "uid-1", true},
		"its claim is gone":      {decide.Fits, nil, exited(0), "uid-1", true},
		"its claim is not bound": {decide.Fits, unbound, exited(0), "uid-1", false},
		"its pod has ended, too": {decide.Fits, bound, over, "uid-1", false},
		"it has failed":          {decide.Fits, bound, exited(75), "uid-1", false},
		"it has two pods":        {decide.Fits, bound, append(exited(0), exited(0)...), "uid-1", false},
		"it has none":            {decide.Fits, bound, nil, "uid-1", false},
		"there is no PV":         {decide.Absent, bound, exited(0), "uid-1", false},
		"its PV proves nothing":  {decide.Unproven, bound, exited(0), "uid-1", false},
		"it serves two claims":   {decide.Fits, bound, exited(0), "uid-1,uid-2", false},
	} {
		o, job := &Observation{Claim: tt.claim}, &batchv1.Job{}
		o.View.Volume.State, job.Annotations = tt.state, map[string]string{jobs.AnnUIDs: tt.uids}
		if got := hasWritten(o, job, tt.pods); got != tt.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
