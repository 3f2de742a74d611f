package controller_test

import (
	"errors"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// An administrator has deleted the namespace already: the objects in it change under uninstall's
// hands, nothing can be made in it any more, and it hangs on our finalizers alone.
func TestUninstallFreesAllInATerminatingNamespace(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Halfway(75)))
		w.Start()
		w.CreateClaim("data")
		w.Until("a pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		w.Until("two runs failed", time.Minute, func() bool { return len(w.Runs) == 2 })
		w.Stop()
		client := w.Server.Client("uninstall")
		held, err := admin.Survey(w.Context(), client, contract.ProvisionerName)
		if err != nil || len(held.Jobs) == 0 {
			w.T.Fatalf("%d Jobs are held, %v", len(held.Jobs), err)
		}
		w.Server.Refuse(func(_, verb string, obj fakecluster.Object) error {
			if verb == "create" {
				return apierrors.NewForbidden(schema.GroupResource{}, obj.GetName(), errors.New("the namespace is being terminated"))
			}
			return nil
		})
		for _, job := range fakecluster.List[*batchv1.Job](w) {
			fakecluster.Delete(w, "namespace-controller", job)
		}
		if err := held.Free(w.Context(), client); err != nil {
			w.T.Error(err)
		}
		if left := fakecluster.List[*batchv1.Job](w); len(left) != 0 {
			w.T.Errorf("%d Jobs keep their namespace", len(left))
		}
		w.Server.Refuse(nil)
	})
}
