package run_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// nextUID is the UID of a claim that was created after the one that the world provisions was deleted.
const nextUID = "3d5a6f3c-1f0e-4c11-9a55-0d8f6a3c1b2e"

// provisionNext provisions the claim that was created under the same name.
func (w *world) provisionNext(t *testing.T) {
	t.Helper()
	pv := skeleton()
	pv.Name, pv.Annotations[contract.AnnClaimUID], pv.Spec.ClaimRef.UID = contract.PVName(nextUID), nextUID, nextUID
	w.run(t, w.request(contract.Provision, func(r *contract.Request) { r.UID, r.PVName = nextUID, pv.Name }), pv)
}

// undone undoes the run of the world's claim, also where it has written a PV.
func (w *world) undone(t *testing.T) {
	t.Helper()
	given := skeleton()
	if pv := w.pvOf(t, uid); pv != nil {
		pv.DeletionTimestamp = new(metav1.Now())
		w.edit(t, pv)
		given = pv
	}
	w.run(t, w.request(contract.Delete, func(r *contract.Request) { r.Undo = true }), given)
}

// adoptions are the kinds of volume that a claim adopts.
var adoptions = map[string]func(t *testing.T, w *world){
	"a volume of no claim": func(_ *testing.T, w *world) {
		id := w.cinder.Add("available", map[string]string{"kept": "yes"})
		w.cinder.Resize(id, 5)
		w.also = map[string]string{"adopt": "shop/data: " + id}
	},
	"a retained volume": func(t *testing.T, w *world) {
		t.Helper()
		w.retained(t, corev1.VolumeReleased, corev1.PersistentVolumeReclaimRetain)
	},
}

// By kubectl replace --force a claim is deleted and created again while its run adopts, so that two runs
// adopt one volume. At most one of them may have a PV of it, and what is undone of the other must not end
// the export of that one. No request of Cinder's changes marks, or ends the export to a host, on a
// condition. So in the moment between two requests the marks of the bound claim may get lost, and, where a
// run ends the former export by the older workflow, its export.
func TestOfTwoClaimsOfOneNameOneAdoptsTheVolume(t *testing.T) {
	for kind, prepare := range adoptions {
		for _, api := range []volume.Method{cinder.Attachments, cinder.Reserve} {
			t.Run(kind+"/"+string(api), func(t *testing.T) {
				unmarked, ended, k := 0, 0, 1
				endsByHost := 0
				if api == cinder.Reserve && kind == "a retained volume" {
					endsByHost = 1
				}
				for ; ; k++ {
					w := newWorld(t)
					w.api = api
					prepare(t, w)
					counted := w.before(k, func() { w.provisionNext(t) })
					w.provision(t)
					w.cinder.Gate = nil
					if counted() < k {
						break
					}
					if w.pvOf(t, nextUID) == nil {
						continue
					}
					if w.pvOf(t, uid) != nil {
						t.Errorf("request %d: the PVs of two claims name one volume", k)
					}
					w.undone(t)
					v := w.cinder.Volumes()[0]
					if owner := v.Metadata[contract.AnnClaimUID]; owner == "" {
						unmarked++
					} else if owner != nextUID {
						t.Errorf("request %d: the bound claim's volume is marked as that of %s", k, owner)
					}
					if v.Status != "in-use" {
						ended++
					}
				}
				if k < 5 || unmarked > 1+endsByHost || ended > endsByHost {
					t.Errorf("at %d requests the marks of the bound claim were lost %d times, and its export %d times", k-1, unmarked, ended)
				}
			})
		}
	}
}

// Both runs stop: that of the deleted claim before one of its requests, and then that of the new one before
// one of its own, until the first has ended. A deletion by the PV of one would delete the volume of the other.
func TestNoTwoClaimsHaveAPVOfOneAdoptedVolume(t *testing.T) {
	const first, last = 4, 8 // from the marks to the export
	for kind, prepare := range adoptions {
		t.Run(kind, func(t *testing.T) {
			for old := first; old <= last; old++ {
				for next := first; next <= last; next++ {
					w := newWorld(t)
					w.api = cinder.Attachments
					prepare(t, w)
					w.provisionBoth(t, old, next)
					if w.pvOf(t, uid) != nil && w.pvOf(t, nextUID) != nil {
						t.Errorf("requests %d and %d: both claims have a PV of volume %+v", old, next, w.cinder.Volumes()[0])
					}
				}
			}
		})
	}
}

// provisionBoth stops a run before its old-th request, and the run of the next claim before its next-th
// one. Then the first run goes on to its end, and the other one after it.
func (w *world) provisionBoth(t *testing.T, old, next int) {
	t.Helper()
	stopped, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var mu sync.Mutex
	both, requests := false, 0
	counted := w.before(old, func() {
		requests, both = 0, true
		go func() {
			defer close(done)
			w.provisionNext(t)
		}()
		select {
		case <-stopped:
		case <-done:
		}
		mu.Lock()
		defer mu.Unlock()
		both = false
	})
	outer := w.cinder.Gate
	w.cinder.Gate = func(r *http.Request) cindertest.Fate {
		mu.Lock()
		if both {
			requests++
			if requests == next {
				mu.Unlock()
				close(stopped)
				<-goOn
				return cindertest.Answer
			}
			mu.Unlock()
			return cindertest.Answer
		}
		mu.Unlock()
		return outer(r)
	}
	w.provision(t)
	close(goOn)
	if counted() >= old {
		<-done
	}
	w.cinder.Gate = nil
}

// A batch of undos lists its volumes once. An administrator frees the adopted volume of the last one
// meanwhile, as a message of the image tells, and another claim adopts it and is bound.
func TestALateUndoLeavesAVolumeThatAnotherClaimHasAdopted(t *testing.T) {
	for _, api := range []volume.Method{cinder.Attachments, cinder.Reserve} {
		t.Run(string(api), func(t *testing.T) {
			unmarked, adopted := 0, 0
			for k := 1; ; k++ {
				w := newWorld(t)
				w.api, w.also = api, map[string]string{"parallel": "1"}
				w.wantCode(t, w.batch(t, contract.Provision, 2, nil), contract.ExitDone)
				for i := range 2 {
					_ = w.kube.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("persistentvolumes"), "", contract.PVName(uidOf(i)))
				}
				id := w.cinder.Add("available", map[string]string{contract.AnnClaimUID: uidOf(2), "flex-provisioner.io/adopted": "true", "flex-provisioner.io/cluster-uid": clusterUID})
				w.cinder.Resize(id, 5)
				undo := map[string]string{"parallel": "1", "adopt": "shop/data-2: " + id}
				w.also = undo
				code := -1
				counted := w.before(k, func() {
					w.freed(t, id)
					w.also = map[string]string{"adopt": "shop/data: " + id}
					code = w.provision(t).Code
					w.also = undo
				})
				w.batch(t, contract.Delete, 3, func(_ int, r *contract.Request, _ *corev1.PersistentVolume) { r.Undo = true })
				w.cinder.Gate = nil
				if counted() < k {
					break
				}
				for _, v := range w.cinder.Volumes() {
					if v.ID != id || code != contract.ExitDone {
						continue
					}
					adopted++
					if v.Metadata[contract.AnnClaimUID] != uid {
						unmarked++
					}
					if v.Status != "in-use" {
						t.Errorf("request %d: the bound claim's volume is %s", k, v.Status)
					}
				}
			}
			if adopted < 5 || unmarked > 1 {
				t.Errorf("of %d adoptions the marks were lost in %d", adopted, unmarked)
			}
		})
	}
}

// freed removes the marks of a volume, as an administrator does.
func (w *world) freed(t *testing.T, id string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPut, w.cinder.Endpoint()+"/volumes/"+id+"/metadata", strings.NewReader(`{"metadata":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Auth-Token", "admin:admin")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Body.Close(); answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status)
	}
}
