package runs_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

func TestStartTimeIsOfTheProvisionerContainer(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC))
	pod := func(name string, state corev1.ContainerState) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: name, State: state}}}}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: at}}
	for what, one := range map[string]struct {
		pods []*corev1.Pod
		want metav1.Time
	}{
		"no pod":            {nil, metav1.Time{}},
		"it runs":           {[]*corev1.Pod{pod(contract.Container, running)}, at},
		"it ended":          {[]*corev1.Pod{pod(contract.Container, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: at}})}, at},
		"it waits":          {[]*corev1.Pod{pod(contract.Container, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}})}, metav1.Time{}},
		"a sidecar runs":    {[]*corev1.Pod{pod("notifier", running)}, metav1.Time{}},
		"nothing is known":  {[]*corev1.Pod{{}}, metav1.Time{}},
		"a newer pod waits": {[]*corev1.Pod{pod(contract.Container, running), {ObjectMeta: metav1.ObjectMeta{CreationTimestamp: at}}}, metav1.Time{}},
	} {
		if got := runs.StartTime(one.pods); !got.Equal(&one.want) {
			t.Errorf("%s: started at %s, want %s", what, got, one.want)
		}
	}
}
