package runs_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

func TestPodIsOfTheJobThatControlsItOrThatHasLeftIt(t *testing.T) {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "provision-1-1", UID: "this"}}
	controller := func(uid types.UID) []metav1.OwnerReference {
		return []metav1.OwnerReference{{Kind: "Job", Name: job.Name, UID: uid, Controller: new(true)}}
	}
	for name, test := range map[string]struct {
		label  string
		owners []metav1.OwnerReference
		want   bool
	}{
		"it controls it":                    {"this", controller("this"), true},
		"an earlier one of its name does":   {"that", controller("that"), false},
		"it has left it":                    {"this", nil, true},
		"an earlier one has left it":        {"that", nil, false},
		"another one has taken it":          {"this", controller("that"), false},
		"an owner that is no controller":    {"this", []metav1.OwnerReference{{Kind: "ConfigMap", UID: "other"}}, true},
		"nothing says whose it is":          {"", nil, false},
		"it controls it, without the label": {"", controller("this"), true},
	} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{batchv1.ControllerUidLabel: test.label}, OwnerReferences: test.owners}}
		if got := runs.IsPodOf(pod, job); got != test.want || len(runs.PodsOf(job, []*corev1.Pod{pod})) > 0 != test.want {
			t.Errorf("%s: it is the Job's: %t", name, got)
		}
	}
}
