package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// staticPV creates the PV static by hand.
func (w *world) staticPV(size string, changes ...func(*corev1.PersistentVolume)) {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "static"}}
	pv.Spec = corev1.PersistentVolumeSpec{
		StorageClassName: "gold", Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)},
		AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteMany},
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		PersistentVolumeSource:        corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "filer", Path: "/by-hand"}},
	}
	for _, change := range changes {
		change(pv)
	}
	fakecluster.Create(w, fakecluster.Admin, pv)
}

func namesClaim(name string) func(*corev1.PersistentVolume) {
	return func(pv *corev1.PersistentVolume) {
		pv.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "app", Name: name}
	}
}

// The cache does not show the PV by hand yet, and the claim is bound to it while its own volume is
// made.
func TestAClaimThatIsBoundToAnotherPVLeavesNothingUnseen(t *testing.T) {
	for policy, end := range map[corev1.PersistentVolumeReclaimPolicy]func(*world, string){
		corev1.PersistentVolumeReclaimDelete: func(w *world, _ string) {
			w.Until("its own PV has been deleted with its volume", time.Minute, func() bool {
				return len(w.Runs) == 2 && len(w.Storage) == 0 && len(fakecluster.List[*corev1.PersistentVolume](w)) == 1
			})
			w.MustRun("provision", "delete")
		},
		corev1.PersistentVolumeReclaimRetain: func(w *world, pv string) {
			w.Advance(time.Minute)
			w.MustEmitSome(onData, "VolumeInDoubt", "has bound the claim to another PersistentVolume", "Retain")
			w.MustRun("provision")
			if fakecluster.Get[*corev1.PersistentVolume](w, "", pv) == nil {
				w.T.Error("a retained PV was deleted")
			}
		},
	} {
		t.Run(string(policy), func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
				w.CreateClass("gold", policy)
				w.CreateServiceAccount("true")
				w.CreateConfig("gold", "gold", "keep-deleted", "168h") // that no claim ever had is not kept
				w.BinderDown = true
				w.Start()
				w.Dispatcher().DelayWatches("persistentvolumes", true)
				w.staticPV("1Ti")
				w.Advance(2 * time.Minute)
				claim := w.CreateClaim("data")
				w.Until("its pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
				w.BinderDown = false
				w.Until("it is bound to the PV by hand", time.Minute, func() bool { return w.Claim("data").Spec.VolumeName == "static" })
				w.Dispatcher().DelayWatches("persistentvolumes", false)
				end(w, contract.PVName(string(claim.UID)))
				w.mustCount([]string{"flex_dispatcher_spare"}, map[string]float64{`flex_dispatcher_spare_volumes_total{class="gold"}`: 1})
				if got := w.Claim("data"); got == nil || got.Spec.VolumeName != "static" {
					w.T.Error("the claim is not bound to the PV by hand any more")
				}
			})
		})
	}
}
