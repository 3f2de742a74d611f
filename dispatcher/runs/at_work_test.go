package runs_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

func TestAPodIsAtWorkUntilItsNodeSaysThatAllContainersHaveEnded(t *testing.T) {
	ended := corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}
	running := corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	waiting := corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}
	for name, test := range map[string]struct {
		phase    corev1.PodPhase
		statuses []corev1.ContainerStatus
		init     []corev1.ContainerStatus
		atWork   bool
	}{
		"nothing is said yet":                {phase: corev1.PodPending, atWork: true},
		"an init container runs":             {phase: corev1.PodPending, init: []corev1.ContainerStatus{running}, statuses: []corev1.ContainerStatus{waiting, waiting}, atWork: true},
		"an init container has ended":        {phase: corev1.PodPending, init: []corev1.ContainerStatus{ended}, statuses: []corev1.ContainerStatus{waiting, waiting}, atWork: true},
		"one of two containers runs":         {phase: corev1.PodRunning, init: []corev1.ContainerStatus{ended}, statuses: []corev1.ContainerStatus{ended, running}, atWork: true},
		"a sidecar runs":                     {phase: corev1.PodRunning, init: []corev1.ContainerStatus{running}, statuses: []corev1.ContainerStatus{ended, ended}, atWork: true},
		"of one container nothing is said":   {phase: corev1.PodRunning, init: []corev1.ContainerStatus{ended}, statuses: []corev1.ContainerStatus{ended}, atWork: true},
		"all have ended, and the pod not":    {phase: corev1.PodRunning, init: []corev1.ContainerStatus{ended}, statuses: []corev1.ContainerStatus{ended, ended}},
		"the pod has failed without a start": {phase: corev1.PodFailed, init: []corev1.ContainerStatus{waiting}, statuses: []corev1.ContainerStatus{waiting, waiting}},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node", InitContainers: make([]corev1.Container, 1), Containers: make([]corev1.Container, 2)}}
			pod.Status = corev1.PodStatus{Phase: test.phase, InitContainerStatuses: test.init, ContainerStatuses: test.statuses}
			now := time.Now()
			if got := runs.IsAtWork(pod, now); got != test.atWork {
				t.Errorf("at work: %v, want %v", got, test.atWork)
			}
			if may, _ := runs.MayRun(pod, now); may != (test.phase != corev1.PodFailed) {
				t.Errorf("it may run: %v, although only the pod's phase is final", may)
			}
		})
	}
}
