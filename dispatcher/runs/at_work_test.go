package runs_test

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// A slot is free when the container has ended, and not before its pod has ended anything else is
// started for the claim.
func TestAPodIsAtWorkUntilItsNodeSaysThatItsContainerHasEnded(t *testing.T) {
	of := func(name string, state corev1.ContainerState) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, State: state}
	}
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	waiting := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
	const own, proxy = contract.Container, "proxy"
	for name, test := range map[string]struct {
		phase    corev1.PodPhase
		statuses []corev1.ContainerStatus
		init     []corev1.ContainerStatus
		ended    bool
	}{
		"nothing is said yet":            {phase: corev1.PodPending},
		"an init container runs":         {phase: corev1.PodPending, init: []corev1.ContainerStatus{of("init", running)}, statuses: []corev1.ContainerStatus{of(own, waiting)}},
		"an init container has ended":    {phase: corev1.PodPending, init: []corev1.ContainerStatus{of("init", ended)}, statuses: []corev1.ContainerStatus{of(own, waiting)}},
		"it runs, its sidecar has ended": {phase: corev1.PodRunning, statuses: []corev1.ContainerStatus{of(proxy, ended), of(own, running)}},
		"a sidecar runs":                 {phase: corev1.PodRunning, statuses: []corev1.ContainerStatus{of(proxy, running), of(own, ended)}, ended: true},
		"a native sidecar runs":          {phase: corev1.PodRunning, init: []corev1.ContainerStatus{of(proxy, running)}, statuses: []corev1.ContainerStatus{of(own, ended)}, ended: true},
		"all have ended":                 {phase: corev1.PodRunning, init: []corev1.ContainerStatus{of("init", ended)}, statuses: []corev1.ContainerStatus{of(own, ended)}, ended: true},
		"the pod has failed":             {phase: corev1.PodFailed, init: []corev1.ContainerStatus{of("init", waiting)}, statuses: []corev1.ContainerStatus{of(own, waiting)}, ended: true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node"}}
			pod.Status = corev1.PodStatus{Phase: test.phase, InitContainerStatuses: test.init, ContainerStatuses: test.statuses}
			now := time.Now()
			if got := runs.IsAtWork(pod, now); got == test.ended {
				t.Errorf("at work: %v", got)
			}
			if may, _ := runs.MayRun(pod, now); may != (test.phase != corev1.PodFailed) {
				t.Errorf("it may run: %v, although only the pod's phase is final", may)
			}
		})
	}
}

// Its node reports nothing more of a pod that was deleted by force, and has said all that matters.
func TestAForceDeletedPodWhoseContainerHasEndedIsOver(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*corev1.Pod)
		want   bool
	}{
		"deleted by force":             {byForce, true},
		"deleted":                      {deletedByHand, false},
		"not deleted":                  {func(*corev1.Pod) {}, false},
		"by force, with its container": {func(p *corev1.Pod) { byForce(p); p.Status.ContainerStatuses = nil }, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := exited(0, "", beside(corev1.PodRunning), tt.change)
			if got := runs.IsOver(pod); got != tt.want {
				t.Errorf("it is over: %t", got)
			}
		})
	}
}

// A time to live that the dispatcher has set comes with the release of the record.
func TestAJobExpiresAtOnceOnlyByThePolicyOfOthers(t *testing.T) {
	for name, tt := range map[string]struct {
		ttl  *int32
		held bool
		want bool
	}{
		"without a time to live":   {nil, true, false},
		"of no time":               {new(int32(0)), true, true},
		"of less than a done Job":  {new(int32(299)), true, true},
		"as that of a done Job":    {new(int32(300)), true, false},
		"released, and of no time": {new(int32(0)), false, false},
	} {
		job := &batchv1.Job{Spec: batchv1.JobSpec{TTLSecondsAfterFinished: tt.ttl}}
		if tt.held {
			job.Finalizers = []string{jobs.FinalizerRecord}
		}
		if got := runs.ExpiresAtOnce(job); got != tt.want {
			t.Errorf("%s: it expires at once: %t", name, got)
		}
	}
}
