package controller_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// twoNamespaces sets up the class gold in the dispatcher's --namespace, and the class silver in the
// namespace team.
func (w *world) twoNamespaces() {
	w.options.Namespaces = []string{fakecluster.ConfigNamespace, "team"}
	w.options.MissingIn = func(_ context.Context, ns string) (string, error) {
		if _, forbidden := w.Server.Forbidden.Load(ns); forbidden {
			return strings.Repeat("list jobs.batch in the namespace "+ns+"; ", 40), nil // longer than an event's note may be
		}
		return "", nil
	}
	w.SetUpGold(fakecluster.Works)
	w.CreateClass("silver", corev1.PersistentVolumeReclaimDelete, func(c *storagev1.StorageClass) {
		c.Parameters = map[string]string{contract.ParamConfigNamespace: "team"}
	})
	fakecluster.Create(w, fakecluster.Admin, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{
		Name: "writer", Namespace: "team", Labels: map[string]string{contract.LabelProvisioner: "true"},
	}})
	fakecluster.Create(w, fakecluster.Admin, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "silver", Namespace: "team", Labels: map[string]string{
			contract.LabelType: contract.TypeConfig, contract.LabelStorageClass: "silver",
		}},
		Data: map[string]string{"image": fakecluster.GoldImage, "service-account-name": "writer", "verbs": "provision,delete"},
	})
}

func ofSilver(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("silver") }

// A further config namespace is deleted, and with it the RoleBinding by which the dispatcher may
// look there.
func TestAConfigNamespaceThatGoesStopsOnlyItsOwnClasses(t *testing.T) {
	inWorld(t, func(w *world) {
		w.twoNamespaces()
		w.Start()
		old := w.CreateClaim("old", ofSilver)
		w.Until("the claim of the further namespace is bound", time.Minute, w.IsBound("old"))
		w.Advance(10 * time.Second)
		w.Server.Forbidden.Store("team", true)
		w.CreateClaim("at-once")
		w.Until("the other class is served at once", 5*time.Second, w.IsBound("at-once"))
		w.Advance(2 * time.Minute)
		fakecluster.Delete(w, fakecluster.User, old)
		w.CreateClaim("data", ofSilver)
		w.Advance(24 * time.Hour)
		for _, about := range []string{onData, "PersistentVolume/" + w.PVOf(old).Name} {
			w.MustEmitSome(about, "NamespaceNotServed", "team", "list jobs.batch", "RoleBinding")
		}
		w.Server.Forbidden.Delete("team")
		w.Until("both are served again", 3*time.Minute, func() bool { return w.IsBound("data")() && w.PVOf(old) == nil })
	})
}

func TestAConfigNamespaceThatIsMissingAtStartStopsOnlyItsOwnClasses(t *testing.T) {
	inWorld(t, func(w *world) {
		w.twoNamespaces()
		w.Server.Forbidden.Store("team", true)
		w.Start()
		w.provisioned("gold")
		w.CreateClaim("data", ofSilver)
		w.Advance(time.Hour)
		w.MustEmitSome(onData, "NamespaceNotServed", "team", "list jobs.batch", "RoleBinding")
		w.Server.Forbidden.Delete("team")
		w.Until("it is served", 3*time.Minute, w.IsBound("data"))
	})
}

// A claim whose Job is in a namespace that cannot be read must not get a second one elsewhere.
func TestOneRunPerClaimWhileItsConfigNamespaceCannotBeRead(t *testing.T) {
	inWorld(t, func(w *world) {
		w.twoNamespaces()
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Takes: time.Hour, Does: fakecluster.Halfway(75)}
		w.Start()
		w.CreateClaim("data", ofSilver)
		w.Until("its pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		w.Server.Forbidden.Store("team", true)
		silver := fakecluster.Get[*storagev1.StorageClass](w, "", "silver")
		fakecluster.Delete(w, fakecluster.Admin, silver)
		silver.Parameters, silver.ResourceVersion, silver.UID = nil, "", ""
		fakecluster.Create(w, fakecluster.Admin, silver)
		w.CreateConfig("silver", "silver")
		w.Advance(24 * time.Hour)
		if n := len(w.CreatedJobs("")); n != 1 {
			w.T.Errorf("%d Jobs", n)
		}
		w.MustEmitSome(onData, "NamespaceNotServed", "team", "list jobs.batch")
	})
}

// A deleted claim is looked at on live facts, and that fails before the missing RoleBinding is found out.
func TestANamespaceNotServedIsReportedAfterALiveReadHasFailed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.twoNamespaces()
		w.Start()
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Waits: "ErrImagePull"}
		claim := w.CreateClaim("data", ofSilver)
		w.Until("its Job is created", time.Minute, func() bool { return len(w.CreatedJobs("")) == 1 })
		w.Advance(2 * time.Minute)
		w.Server.Forbidden.Store("team", true)
		fakecluster.Update(w, fakecluster.User, claim, func(c *corev1.PersistentVolumeClaim) {
			c.Finalizers = append(c.Finalizers, "example.com/mine")
		})
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(6 * time.Hour)
		w.mustTell(onData, "NamespaceNotServed", "RoleBinding")
	})
}
