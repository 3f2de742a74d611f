package admin_test

import (
	"errors"
	"slices"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

func TestNamespacesThatWereServedBeforeStayNotedOnTheLease(t *testing.T) {
	client := fake.NewClientset(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "home", Name: "lease"}})
	conflicts := 1
	client.PrependReactor("update", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		if conflicts--; conflicts >= 0 {
			return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "leases"}, "lease", errors.New("the elector was faster"))
		}
		return false, nil, nil
	})
	for _, step := range []struct {
		by     string // what an administrator has written, if anything
		served []string
		noted  string
		lost   []string
	}{
		{"", []string{"home", "team"}, "home,team", nil},
		{"", []string{"home"}, "home,team", []string{"team"}},
		{"", []string{"home", "crew"}, "crew,home,team", []string{"team"}},
		{"home, crew", []string{"home", "crew"}, "crew,home", nil},
	} {
		if step.by != "" {
			lease, err := client.CoordinationV1().Leases("home").Get(t.Context(), "lease", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			lease.Annotations[config.AnnNamespaces] = step.by
			if _, err := client.CoordinationV1().Leases("home").Update(t.Context(), lease, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		lease, dropped, err := admin.NoteNamespaces(t.Context(), client, "home", "lease", step.served)
		if err != nil {
			t.Fatal(err)
		}
		if got := lease.Annotations[config.AnnNamespaces]; got != step.noted || !slices.Equal(dropped, step.lost) {
			t.Errorf("%v served: %q is noted, dropped %v", step.served, got, dropped)
		}
	}
}
