package run_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/run"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// The names of the subtests are the defects of standalone-cinder.
func TestDefectsOfStandaloneCinderStayFixed(t *testing.T) {
	tests := map[string]func(*testing.T, *world){
		"random volume names": func(t *testing.T, w *world) {
			t.Helper()
			w.kill(t, 5, cindertest.DropAnswer, (*world).provision)
			w.provision(t)
			if all := w.cinder.Volumes(); len(all) != 1 || all[0].Name != pvName {
				t.Errorf("volumes %v", all)
			}
		},
		"panic when the claim is gone": func(t *testing.T, w *world) {
			t.Helper()
			w.cinder.AddNamed(pvName, "attaching", map[string]string{contract.AnnClaimUID: uid})
			w.wantCode(t, w.remove(t), contract.ExitDone)
			none(t, w)
		},
		"nil dereference on a failed GET": func(t *testing.T, w *world) {
			t.Helper()
			w.cinder.Instead = func(r *http.Request) *cindertest.Reply {
				if r.Method == http.MethodGet && !strings.HasSuffix(r.URL.Path, "/detail") {
					return &cindertest.Reply{Status: http.StatusInternalServerError}
				}
				return nil
			}
			w.wantCode(t, w.provision(t), contract.ExitUnavailable)
		},
		"a constant wait even in error": func(t *testing.T, w *world) {
			t.Helper()
			looks := 0
			w.cinder.Gate = func(r *http.Request) cindertest.Fate {
				if strings.Contains(r.URL.Path, "/volumes/0") && r.Method == http.MethodGet {
					looks++
				}
				return cindertest.Answer
			}
			w.also = map[string]string{"type": cindertest.TypeFull}
			w.wantCode(t, w.provision(t), contract.ExitCapacity)
			if looks > 6 {
				t.Errorf("looked %d times at a volume in error", looks)
			}
		},
		"CHAP Secret not idempotent, in the user's namespace, left behind": func(t *testing.T, w *world) {
			t.Helper()
			for k := 7; k <= 9; k++ {
				w.kill(t, k, cindertest.DropAnswer, (*world).provision)
			}
			w.provision(t)
			one(t, w)
			if s := w.secrets(t)[0]; s.Namespace != namespace {
				t.Errorf("the Secret is in %s", s.Namespace)
			}
			w.deleteTwice(t)
		},
		"CHAP password in logs": func(t *testing.T, w *world) {
			t.Helper()
			w.provision(t)
			w.remove(t)
			w.leaksNothing(t)
		},
		"teardown errors dropped": func(t *testing.T, w *world) {
			t.Helper()
			w.provision(t)
			w.cinder.Instead = func(r *http.Request) *cindertest.Reply {
				if strings.HasSuffix(r.URL.Path, "/action") {
					return &cindertest.Reply{Status: http.StatusInternalServerError}
				}
				return nil
			}
			w.wantCode(t, w.remove(t), contract.ExitUnavailable)
			if len(w.cinder.Volumes()) != 1 || len(w.secrets(t)) != 1 {
				t.Error("it went on after a failed teardown")
			}
		},
		"404 on delete wedges the PV": func(t *testing.T, w *world) {
			t.Helper()
			w.provision(t)
			w.cinder.Forget(w.own(t).ID)
			w.wantCode(t, w.remove(t), contract.ExitDone)
			none(t, w)
		},
		"RWX accepted on block": func(t *testing.T, w *world) {
			t.Helper()
			object := skeleton(corev1.ReadWriteMany)
			object.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
			w.also = map[string]string{"connection": "iscsi"}
			w.wantCode(t, w.run(t, w.request(contract.Provision, nil), object), contract.ExitBadRequest)
			none(t, w)
		},
		"volumeMode, mountOptions, fsType ignored": func(t *testing.T, w *world) {
			t.Helper()
			object := skeleton()
			object.Spec.MountOptions = []string{"noatime"}
			w.run(t, w.request(contract.Provision, nil), object)
			if made := w.pvs(t)[0].Spec; made.ISCSI.FSType != "xfs" || !cmp.Equal(made.MountOptions, []string{"noatime"}) {
				t.Errorf("%+v", made)
			}
			w = newWorld(t)
			object.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
			w.run(t, w.request(contract.Provision, nil), object)
			if made := w.pvs(t)[0].Spec; made.ISCSI.FSType != "" || *made.VolumeMode != corev1.PersistentVolumeBlock {
				t.Errorf("%+v", made)
			}
		},
		"capacity not the rounded size": func(t *testing.T, w *world) {
			t.Helper()
			w.provision(t)
			if size := w.pvs(t)[0].Spec.Capacity[corev1.ResourceStorage]; size.String() != "3Gi" || w.own(t).SizeGiB != 3 {
				t.Errorf("the PV has %s", &size)
			}
		},
		"multipath and encryption ignored": func(t *testing.T, w *world) {
			t.Helper()
			w.also = map[string]string{"multipath": "true"}
			w.provision(t)
			if made := w.pvs(t)[0].Spec.ISCSI; !cmp.Equal(made.Portals, []string{"127.0.0.2:3260"}) {
				t.Errorf("%+v", made)
			}
			w = newWorld(t)
			w.also = map[string]string{"type": cindertest.TypeEncrypted}
			w.wantCode(t, w.provision(t), contract.ExitConfig)
			none(t, w)
		},
		"clone trusting a user-writable annotation for the volume id": func(t *testing.T, w *world) {
			t.Helper()
			victim := w.cinder.Add("available", map[string]string{contract.AnnClaimUID: otherUID})
			w.wantCode(t, w.run(t, w.request(contract.Provision, func(r *contract.Request) {
				r.Properties["smartclone"] = "true"
				r.Annotations = map[string]string{
					contract.AnnCloneRequest: "shop/original", "k8s.io/CloneOf": victim, "flex-provisioner.io/cinder-volume-id": victim,
				}
			}), skeleton()), contract.ExitBadRequest)
			if len(w.cinder.Volumes()) != 1 {
				t.Errorf("volumes %v", w.cinder.Volumes())
			}
		},
		`smartclone "false" meaning true`: func(t *testing.T, w *world) {
			t.Helper()
			w.addSource(t, nil)
			w.wantCode(t, w.run(t, w.request(contract.Provision, fromOriginal(map[string]string{"smartclone": "false"})), skeleton()),
				contract.ExitBadRequest)
		},
		"deletion needing the mapper": func(t *testing.T, w *world) {
			t.Helper()
			w.provision(t)
			w.also = map[string]string{"connection": "vmdk", "mounter": "nowhere"}
			w.deleteTwice(t)
		},
		"v2 API": func(t *testing.T, w *world) {
			t.Helper()
			in := w.input(t, w.request(contract.Provision, nil), skeleton())
			in.Env["OS_CINDER_ENDPOINT"] = w.cinder.URL + "/v2"
			tasks, err := input.Read(in)
			result := run.JudgeAll(run.End(tasks, err))
			if result.Code != contract.ExitConfig || !strings.Contains(result.Message, "which no longer exists: write \""+w.cinder.URL+"/v3\"") {
				t.Errorf("%+v", result)
			}
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) { test(t, newWorld(t)) })
	}
}

func (w *world) wantCode(t *testing.T, result run.Result, code int) {
	t.Helper()
	if result.Code != code {
		t.Errorf("code %d, want %d: %s", result.Code, code, result.Message)
	}
}

// The claim's user has made a mistake after a run that has made the volume, and has deleted the
// claim. The undo has the request of the newest run.
func TestUndoOfAClaimWhoseRequestWasRefusedRemovesWhatAnEarlierRunMade(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*contract.Request){
		"a wrong hint": func(r *contract.Request) { r.Annotations = map[string]string{"example.com/away-from": "my-database"} },
		"a size":       func(r *contract.Request) { r.Size = 3 << 60 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.also = map[string]string{"hint-annotations": "different_host=example.com/away-from"}
			w.guard(func(n int) cindertest.Fate {
				if n > 4 {
					return cindertest.DropRequest
				}
				return cindertest.Answer
			})
			w.run(t, w.request(contract.Provision, nil), skeleton())
			w.guard(nil)
			if n := len(w.cinder.Volumes()); n != 1 {
				t.Fatalf("the first run has made %d volumes", n)
			}
			if refused := w.run(t, w.request(contract.Provision, edit), skeleton()); refused.Code != contract.ExitBadRequest {
				t.Errorf("the second run ended with %d: %s", refused.Code, refused.Message)
			}
			undo := w.run(t, w.request(contract.Delete, func(r *contract.Request) { edit(r); r.Undo = true }), skeleton())
			if left := len(w.cinder.Volumes()); undo.Code != contract.ExitDone || left > 0 {
				t.Errorf("the undo ended with %d, and %d volumes are left: %s", undo.Code, left, undo.Message)
			}
		})
	}
}
