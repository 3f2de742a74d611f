package run_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// before does something before the k-th request to Cinder is answered. It returns how many there were.
func (w *world) before(k int, do func()) (counted func() int) {
	var mu sync.Mutex
	n, isNested := 0, false
	w.cinder.Gate = func(*http.Request) cindertest.Fate {
		mu.Lock()
		defer mu.Unlock()
		if isNested {
			return cindertest.Answer
		}
		if n++; n == k {
			isNested = true
			mu.Unlock()
			do()
			mu.Lock()
			isNested = false
		}
		return cindertest.Answer
	}
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

// A batch lists its volumes once, and deletes the last of them minutes later. Until then an
// administrator may have set the PV to Retain, and a new claim may have taken the volume.
func TestADeleteAtWorkDeletesNoVolumeThatAnotherClaimHasTaken(t *testing.T) {
	for _, api := range []volume.Method{cinder.Attachments, cinder.Reserve} {
		t.Run(string(api), func(t *testing.T) {
			for k := 1; ; k++ {
				w := newWorld(t)
				w.api, w.also = api, map[string]string{"parallel": "1"}
				w.wantCode(t, w.batch(t, contract.Provision, 3, nil), contract.ExitDone)
				last := w.pvOf(t, uidOf(2))
				id := last.Annotations["flex-provisioner.io/cinder-volume-id"]
				counted := w.before(k, func() {
					last.Status.Phase, last.Spec.PersistentVolumeReclaimPolicy = corev1.VolumeReleased, corev1.PersistentVolumeReclaimRetain
					w.edit(t, last)
					w.also = map[string]string{"adopt": last.Spec.ClaimRef.Namespace + "/" + last.Spec.ClaimRef.Name + ": " + id}
					w.run(t, w.request(contract.Provision, func(r *contract.Request) {
						r.ClusterUID, r.Namespace, r.Name = clusterUID, last.Spec.ClaimRef.Namespace, last.Spec.ClaimRef.Name
					}), skeleton())
					w.also = map[string]string{"parallel": "1"}
				})
				w.batch(t, contract.Delete, 3, nil)
				w.cinder.Gate = nil
				if counted() < k {
					return
				}
				exists := false
				for _, v := range w.cinder.Volumes() {
					exists = exists || v.ID == id
				}
				for _, one := range w.pvs(t) {
					if one.Name == pvName && !exists {
						t.Fatalf("at request %d of the delete another claim took the volume, which is deleted", k)
					}
				}
			}
		})
	}
}

func TestAClaimTakesNoVolumeOfAnotherMode(t *testing.T) {
	for mode, want := range map[corev1.PersistentVolumeMode]int{corev1.PersistentVolumeBlock: contract.ExitBadRequest, corev1.PersistentVolumeFilesystem: contract.ExitDone} {
		w := newWorld(t)
		former := w.retained(t, corev1.VolumeReleased, corev1.PersistentVolumeReclaimRetain)
		former.Spec.VolumeMode = &mode
		w.edit(t, former)
		w.wantCode(t, w.provision(t), want)
	}
}

// A pod writes any bytes on a raw device. A kubelet that mounts them as a file system can end its node's kernel.
func TestAClaimTakesNoBackupOfAVolumeOfAnotherMode(t *testing.T) {
	w := newWorld(t)
	raw := skeleton()
	raw.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	w.wantCode(t, w.run(t, w.request(contract.Provision, func(r *contract.Request) { r.VolumeMode = "Block" }), raw), contract.ExitDone)
	restored := w.restore(t)
	next := skeleton()
	next.Name, next.Annotations[contract.AnnClaimUID], next.Spec.ClaimRef.UID = contract.PVName(otherUID), otherUID, otherUID
	result := w.run(t, w.request(contract.Provision, func(r *contract.Request) {
		r.UID, r.PVName, r.Properties["adopt"] = otherUID, next.Name, "shop/data: "+restored
	}), next)
	if w.wantCode(t, result, contract.ExitBadRequest); !strings.Contains(result.Message, "another volumeMode") {
		t.Errorf("it says: %s", result.Message)
	}
}

// The claimRef of a PV that an administrator passes on has no UID, whatever its phase still is.
func TestAClaimTakesNoVolumeOfAPVThatIsPassedOn(t *testing.T) {
	w := newWorld(t)
	former := w.retained(t, corev1.VolumeReleased, corev1.PersistentVolumeReclaimRetain)
	former.Spec.ClaimRef.UID = ""
	w.edit(t, former)
	w.wantCode(t, w.provision(t), contract.ExitBadRequest)
}

// The PV controller never takes a PV out of this phase.
func TestAClaimTakesTheVolumeOfARetainedPVThatHasFailed(t *testing.T) {
	w := newWorld(t)
	w.retained(t, corev1.VolumeFailed, corev1.PersistentVolumeReclaimRetain)
	w.wantCode(t, w.provision(t), contract.ExitDone)
}
