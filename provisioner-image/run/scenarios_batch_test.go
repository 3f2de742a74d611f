package run_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	kubetesting "k8s.io/client-go/testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// newBatchWorld returns a world with room for many claims.
func newBatchWorld(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.cinder.Quota, w.api = 1000, cinder.Auto
	return w
}

// served checks that each of n claims has one volume, one PV that names it, and one Secret with
// that volume's own password.
func (w *world) served(t *testing.T, n int) {
	t.Helper()
	volumes, secrets, pvs := w.cinder.Volumes(), w.secrets(t), w.pvs(t)
	if len(volumes) != n || len(secrets) != n || len(pvs) != n {
		t.Fatalf("%d volumes, %d Secrets, %d PVs of %d claims", len(volumes), len(secrets), len(pvs), n)
	}
	for i := range n {
		name := contract.PVName(uidOf(i))
		v := slices.IndexFunc(volumes, func(v cindertest.View) bool { return v.Metadata[contract.AnnClaimUID] == uidOf(i) })
		s := slices.IndexFunc(secrets, func(s corev1.Secret) bool { return s.Name == name })
		if v < 0 || s < 0 {
			t.Fatalf("claim %d has no volume or no Secret", i)
		}
		if id := volumes[v].ID; w.pvOf(t, uidOf(i)).Annotations["flex-provisioner.io/cinder-volume-id"] != id ||
			string(secrets[s].Data["node.session.auth.password"]) != cindertest.Password(id) {
			t.Errorf("volume, Secret and PV of claim %d do not fit together", i)
		}
	}
}

// Twenty claims are served by one list of volumes, by a few requests at a time; then their volumes
// are deleted likewise.
func TestBatchListsOnceAndSendsAFewRequestsAtATime(t *testing.T) {
	for parallel, want := range map[string]int{"": 8, "3": 3} {
		t.Run(parallel, func(t *testing.T) {
			const claims = 20
			w := newBatchWorld(t)
			w.also = map[string]string{"parallel": parallel}
			for _, verb := range []contract.Verb{contract.Provision, contract.Delete} {
				w.sent.slow, w.sent.most, w.sent.all = 2*time.Millisecond, 0, nil
				result := w.batch(t, verb, claims, nil)
				if all := codes(result.Message); result.Code != contract.ExitDone || len(all) != claims {
					t.Fatalf("%s: %+v", verb, result)
				}
				if w.sent.most != want {
					t.Errorf("%s: %d requests at a time, want %d", verb, w.sent.most, want)
				}
				if lists := w.sent.count("GET /v3/volumes/detail"); lists != 1 {
					t.Errorf("%s: %d lists of volumes", verb, lists)
				}
				if asked := w.sent.count("GET /v3/attachments?limit=1"); asked > 1 {
					t.Errorf("%s: asked %d times whether Cinder knows attachments", verb, asked)
				}
				if verb == contract.Provision {
					w.served(t, claims)
				}
			}
			none(t, w)
		})
	}
}

// The policy on Secrets reads the class in this label.
func TestSecretNamesItsClassSoThatABatchMayDeleteIt(t *testing.T) {
	w := newBatchWorld(t)
	w.batch(t, contract.Provision, 2, nil)
	for _, s := range w.secrets(t) {
		if s.Labels[contract.LabelStorageClass] != "silver" {
			t.Errorf("labels %v", s.Labels)
		}
	}
	w = newBatchWorld(t)
	w.run(t, w.request(contract.Provision, func(r *contract.Request) { r.Class = strings.Repeat("long-", 13) }), skeleton())
	if all := w.secrets(t); len(all) != 1 || len(all[0].Labels) != 1 {
		t.Errorf("a class's name of 65 characters: %+v", all)
	}
}

// Of twenty claims one asks for what the image refuses, one for a volume that Cinder does not make
// now, one is asked to wait, and one is of a size that the type forbids. Each has its own result,
// and all others are served.
func TestOneClaimsFailureInABatchFailsNoOther(t *testing.T) {
	const claims, refused, broken, waits, large = 20, 4, 7, 11, 13
	w := newBatchWorld(t)
	w.cinder.MaxSize = 50
	asked := false
	w.cinder.Instead = func(r *http.Request) *cindertest.Reply {
		body, _ := io.ReadAll(r.Body) // of a test
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		w.mu.Lock()
		defer w.mu.Unlock()
		switch creates := r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/volumes"); {
		case creates && strings.Contains(string(body), uidOf(broken)):
			return &cindertest.Reply{Status: http.StatusServiceUnavailable}
		case creates && strings.Contains(string(body), uidOf(waits)) && !asked:
			asked = true
			return &cindertest.Reply{Status: http.StatusTooManyRequests, Header: map[string]string{"Retry-After": "7"}}
		default:
			return nil
		}
	}
	result := w.batch(t, contract.Provision, claims, func(i int, r *contract.Request, object *corev1.PersistentVolume) {
		switch i {
		case refused:
			object.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		case large:
			r.Size = 100 << 30
		}
	})
	want := map[string]int32{
		uidOf(refused): contract.ExitBadRequest, uidOf(broken): contract.ExitUnavailable, uidOf(large): contract.ExitBadRequest,
	}
	got := codes(result.Message)
	for i := range claims {
		if got[uidOf(i)] != want[uidOf(i)] || len(got) != claims {
			t.Errorf("claim %d ended with %d, want %d", i, got[uidOf(i)], want[uidOf(i)])
		}
	}
	if result.Code != contract.ExitTempFail || !slices.Equal(w.waits, []time.Duration{7 * time.Second}) {
		t.Errorf("code %d, waited %v", result.Code, w.waits)
	}
	for i, text := range map[int]string{refused: "ReadWriteMany is not supported", broken: "it is tried again", large: "maximum allowable size"} {
		if user := contract.ForClaim(said(result.Message, i)); !strings.Contains(user, text) {
			t.Errorf("the user of claim %d is shown %q, want %q", i, user, text)
		}
	}
	if all := w.cinder.Volumes(); len(all) != claims-len(want) || len(w.pvs(t)) != len(all) || len(w.secrets(t)) != len(all) {
		t.Errorf("%d volumes, %d PVs and %d Secrets of %d claims that can be served", len(all), len(w.pvs(t)), len(w.secrets(t)), claims-len(want))
	}
}

// A volume that a server holds is not deleted. Those of the other claims are.
func TestOneVolumeThatCannotBeDeletedHoldsUpNoOther(t *testing.T) {
	const claims, held = 5, 2
	w := newBatchWorld(t)
	w.api = cinder.Reserve
	w.batch(t, contract.Provision, claims, nil)
	w.cinder.AttachServer(w.pvOf(t, uidOf(held)).Annotations["flex-provisioner.io/cinder-volume-id"], "vm-1")
	result := w.batch(t, contract.Delete, claims, nil)
	for i := range claims {
		want := int32(contract.ExitDone)
		if i == held {
			want = contract.ExitTempFail
		}
		if got, listed := codes(result.Message)[uidOf(i)]; got != want || !listed {
			t.Errorf("claim %d ended with %d, want %d: %s", i, got, want, result.Message)
		}
	}
	if left := w.cinder.Volumes(); len(left) != 1 || len(w.secrets(t)) != 1 {
		t.Errorf("left %v", left)
	}
}

// Kubernetes lets the pod of a batch, which is named after its first claim, write only that claim's
// objects where the account lacks the permission for the class. The others have no result, so that
// they are tried again alone, where nothing is made a second time.
func TestRequestThatKubernetesRefusesABatchIsLeftToARunOfItsOwn(t *testing.T) {
	const claims = 4
	w := newBatchWorld(t)
	alone := false
	w.kube.PrependReactor("create", "persistentvolumes", func(a kubetesting.Action) (bool, runtime.Object, error) {
		made, _ := a.(kubetesting.CreateAction).GetObject().(*corev1.PersistentVolume)
		if alone || made.Name == contract.PVName(uidOf(0)) {
			return false, nil, nil
		}
		return true, nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("PersistentVolume").GroupKind(), made.Name, nil)
	})
	result := w.batch(t, contract.Provision, claims, nil)
	if got := codes(result.Message); result.Code != contract.ExitTempFail || len(got) != 1 || got[uidOf(0)] != contract.ExitDone ||
		!strings.Contains(result.Message, "3 requests must be served alone: create PV") {
		t.Fatalf("%+v", result)
	}
	made := w.cinder.Volumes()
	if len(made) != claims {
		t.Fatalf("%d volumes", len(made))
	}
	alone = true
	for i := range claims {
		w.wantCode(t, w.batchOf(t, contract.Provision, []int{i}, nil), contract.ExitDone)
	}
	w.served(t, claims)
}

// Each volume of a batch has its own size, and its claim is shown what is left to do.
func TestExpandOfABatchReportsEverySize(t *testing.T) {
	const claims = 3
	w := newBatchWorld(t)
	w.batch(t, contract.Provision, claims, nil)
	result := w.batch(t, contract.Expand, claims, func(i int, r *contract.Request, _ *corev1.PersistentVolume) { r.Size = int64(i+5) << 30 })
	for _, r := range contract.DecodeResults(result.Message) {
		i := slices.IndexFunc([]int{0, 1, 2}, func(i int) bool { return uidOf(i) == r.UID })
		if want := contract.Bytes(int64(i+5) << 30); r.Capacity != want || !strings.Contains(contract.ForClaim(r.Message), "the volume was expanded") {
			t.Errorf("claim %d: %+v, want %s", i, r, want)
		}
	}
	if len(codes(result.Message)) != claims || result.Code != contract.ExitDone {
		t.Errorf("%+v", result)
	}
}

// Without the cluster's UID, with many volumes in the cluster, and where Cinder does not answer the
// list, the volumes of each claim are listed. A run that is not admitted at all asks once.
func TestBatchAsksForEachClaimWhereOneListDoesNotDo(t *testing.T) {
	const claims = 4
	anonymous := func(_ int, r *contract.Request, _ *corev1.PersistentVolume) { r.ClusterUID = "" }
	for name, tc := range map[string]struct {
		setup func(*world)
		edit  func(int, *contract.Request, *corev1.PersistentVolume)
		code  int
		lists int
	}{
		"the cluster is not known": {func(*world) {}, anonymous, contract.ExitDone, 2 * claims},
		"many volumes": {func(w *world) {
			for range 251 {
				w.cinder.Add("available", map[string]string{volume.KeyClusterUID: clusterUID})
			}
		}, nil, contract.ExitDone, 1 + 2*claims},
		"no answer": {func(w *world) { w.cinder.Instead = firstList(http.StatusServiceUnavailable) }, nil, contract.ExitDone, 1 + 2*claims},
		"refused":   {func(w *world) { w.cinder.Instead = firstList(http.StatusForbidden) }, nil, contract.ExitTempFail, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newBatchWorld(t)
			tc.setup(w)
			result := w.batch(t, contract.Provision, claims, tc.edit)
			if lists := w.sent.count("GET /v3/volumes/detail"); result.Code != tc.code || lists != tc.lists {
				t.Errorf("%d lists, want %d; %+v", lists, tc.lists, result)
			}
			for uid, code := range codes(result.Message) {
				if (code == contract.ExitDone) != (tc.code == contract.ExitDone) {
					t.Errorf("claim %s ended with %d", uid, code)
				}
			}
			if len(codes(result.Message)) != claims {
				t.Errorf("results %s", result.Message)
			}
		})
	}
}

// firstList answers the first list of volumes by a status.
func firstList(status int) func(*http.Request) *cindertest.Reply {
	done := false
	return func(r *http.Request) *cindertest.Reply {
		if done || !strings.HasSuffix(r.URL.Path, "/volumes/detail") {
			return nil
		}
		done = true
		return &cindertest.Reply{Status: status}
	}
}

// What a run under the same cluster left is found by the one list: a volume that is ready, one that
// has failed, and a second one.
func TestBatchFindsWhatAnEarlierRunLeft(t *testing.T) {
	const claims = 3
	w := newBatchWorld(t)
	marks := func(i int) map[string]string {
		return map[string]string{contract.AnnClaimUID: uidOf(i), volume.KeyClusterUID: clusterUID}
	}
	ready := w.cinder.AddNamed(contract.PVName(uidOf(0)), "available", marks(0))
	w.cinder.AddNamed(contract.PVName(uidOf(1)), "error", marks(1))
	w.cinder.Resize(ready, 3)
	result := w.batch(t, contract.Provision, claims, nil)
	w.wantCode(t, result, contract.ExitDone)
	w.served(t, claims)
	if lists := w.sent.count("GET /v3/volumes/detail"); lists != 1 {
		t.Errorf("%d lists", lists)
	}
	if got := w.pvOf(t, uidOf(0)); got.Annotations["flex-provisioner.io/cinder-volume-id"] != ready ||
		got.Spec.Capacity.Storage().Cmp(resource.MustParse("3Gi")) != 0 {
		t.Errorf("the ready volume was not used: %v", got.Annotations)
	}
}

// While a batch of deletes is at work, an ingress before Cinder answers with the page of its
// default backend. No volume has been deleted.
func TestAProxysNotFoundIsNoDeletion(t *testing.T) {
	w := newWorld(t)
	w.cinder.Quota = 100
	w.wantCode(t, w.batch(t, contract.Provision, 3, nil), contract.ExitDone)
	lists := 0
	w.cinder.Instead = func(r *http.Request) *cindertest.Reply {
		if strings.HasSuffix(r.URL.Path, "/volumes/detail") && lists == 0 {
			lists++
			return nil
		}
		return &cindertest.Reply{Status: http.StatusNotFound, Body: "default backend - 404"}
	}
	result := w.batch(t, contract.Delete, 3, nil)
	for uid, code := range codes(result.Message) {
		if code == contract.ExitDone {
			t.Errorf("the volume of claim %s counts as deleted", uid)
		}
	}
	if result.Code == contract.ExitDone || len(w.cinder.Volumes()) != 3 {
		t.Errorf("code %d, %d volumes are left", result.Code, len(w.cinder.Volumes()))
	}
}

// The clocks of a run and of its storage may differ by some minutes, and a batch may take longer
// than that.
func TestEachVolumeOfABatchCarriesTheTimeOfItsOwnTurn(t *testing.T) {
	w := newBatchWorld(t)
	w.also = map[string]string{"parallel": "1"}
	w.wantCode(t, w.batch(t, contract.Provision, 3, nil), contract.ExitDone)
	made := map[string]bool{}
	for _, v := range w.cinder.Volumes() {
		made[v.Metadata["flex-provisioner.io/made-at"]] = true
	}
	if len(made) != 3 || made[""] {
		t.Errorf("three volumes were made at %v", made)
	}
}
