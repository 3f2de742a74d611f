package admin_test

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
)

func TestClusterUIDIsThatOfKubeSystem(t *testing.T) {
	ns := &corev1.Namespace{}
	ns.Name, ns.UID = "kube-system", "the-cluster"
	if uid, err := admin.ClusterUID(t.Context(), fake.NewClientset(ns)); err != nil || uid != "the-cluster" {
		t.Errorf("%q, %v", uid, err)
	}
	empty := fake.NewClientset()
	if uid, err := admin.ClusterUID(t.Context(), empty); err != nil || uid != "" {
		t.Errorf("without the namespace: %q, %v", uid, err)
	}
	empty.PrependReactor("get", "namespaces", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no answer")
	})
	if _, err := admin.ClusterUID(t.Context(), empty); err == nil {
		t.Error("an API server that does not answer is taken for one without the namespace")
	}
}
