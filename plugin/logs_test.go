package plugin

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// ofJob is a Job whose logs are printed.
var ofJob = &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "own", Name: "provision-1b2c-1", UID: "job"}}

// labelled returns a pod with the label of that Job, of an owner.
func labelled(name string, owner types.UID) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: ofJob.Namespace, Name: name, Labels: map[string]string{batchv1.JobNameLabel: ofJob.Name},
			OwnerReferences: []metav1.OwnerReference{{Kind: "Job", Name: ofJob.Name, UID: owner, Controller: new(true)}},
		},
		Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "first"}}, Containers: []corev1.Container{{Name: "second"}}},
	}
}

// logging returns a client whose containers have logs, or none for a cause.
func logging(logs map[string]string, none error, pods ...runtime.Object) kubernetes.Interface {
	client := fake.NewClientset(pods...)
	client.PrependReactor("get", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "log" {
			return false, nil, nil
		}
		log, has := logs[action.(clienttesting.GenericAction).GetValue().(*corev1.PodLogOptions).Container]
		if !has {
			return true, nil, none
		}
		return true, &runtime.Unknown{Raw: []byte(log)}, nil
	})
	return client
}

// Whoever may create pods beside the Jobs can give them any label, and what they print would be read
// as the output of the image.
func TestOnlyTheLogsOfTheJobsOwnPodsArePrinted(t *testing.T) {
	client := logging(map[string]string{"first": "a\n", "second": "b\n"}, nil, labelled("anothers", "other"), labelled("own", "job"))
	var out bytes.Buffer
	if err := printLogs(t.Context(), client, ofJob, &corev1.PodLogOptions{}, &out); err != nil {
		t.Fatal(err)
	}
	if want := "==> pod own, container first <==\na\n==> pod own, container second <==\nb\n"; out.String() != want {
		t.Errorf("it prints %q, want %q", out.String(), want)
	}
	client = logging(nil, nil, labelled("anothers", "other"))
	if err := printLogs(t.Context(), client, ofJob, &corev1.PodLogOptions{}, &out); err == nil || !strings.Contains(err.Error(), "no longer exist") {
		t.Errorf("of a Job whose pods were deleted it says %v", err)
	}
}

func TestALogMovesNoCursorOfATerminal(t *testing.T) {
	client := logging(map[string]string{"first": "\x1b[31mone\ttwo\r\nthree\u202e"}, errors.New("it waits\x1b[31m to start"), labelled("own", "job"))
	var out bytes.Buffer
	if err := printLogs(t.Context(), client, ofJob, &corev1.PodLogOptions{}, &out); err != nil {
		t.Fatal(err)
	}
	text, why, _ := strings.Cut(out.String(), "container second <==\n")
	if want := "==> pod own, container first <==\n[31mone two\nthree\n==> pod own, "; text != want {
		t.Errorf("it prints %q, want %q", text, want)
	}
	if !strings.Contains(why, "it waits[31m to start") {
		t.Errorf("of a container without a log it prints %q", why)
	}
}
