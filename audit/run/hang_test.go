package run

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// A kubelet sends the log of its pods, and may never end it: audits waited for it for ever, and found nothing more.
func TestALogWithoutAnEndHoldsUpNoAudit(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	defer server.CloseClientConnections()
	client, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "list"}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: contract.Container, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: contract.EncodeListEnd(1)}},
	}}
	read := make(chan error, 1)
	go func() {
		_, err := (&Auditor{Client: client, Timeout: 100 * time.Millisecond}).readLog(t.Context(), pod)
		read <- err
	}()
	select {
	case err := <-read:
		if err == nil {
			t.Error("a log that has not ended was read")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the audit waits for the end of the log")
	}
}
