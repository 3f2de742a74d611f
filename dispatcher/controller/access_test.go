package controller_test

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/controller"
)

// A dispatcher that may not write a claim's status would find out only at the first expansion.
func TestAMissingPermissionOnASubresourceIsNamed(t *testing.T) {
	client := &fake.Clientset{}
	client.AddReactor("create", "selfsubjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SelfSubjectAccessReview).DeepCopy()
		asked := review.Spec.ResourceAttributes
		review.Status.Allowed = asked.Subresource == "" && !strings.Contains(asked.Resource, "/")
		return true, review, nil
	})
	err := controller.CheckAccess(t.Context(), client, controller.Options{Namespaces: []string{home}})
	if err == nil || strings.Count(err.Error(), "; ") != 1 || !strings.Contains(err.Error(), "patch persistentvolumeclaims/status in the cluster") {
		t.Errorf("got %v", err)
	}
}
