package run_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubetesting "k8s.io/client-go/testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

const otherUID = "11111111-1f0e-4c11-9a55-0d8f6a3c1b2e"

// addSource makes the volume and the PV of another claim, shop/original, and returns the volume's
// ID.
func (w *world) addSource(t *testing.T, edit func(*corev1.PersistentVolume)) string {
	t.Helper()
	id := w.cinder.Add("in-use", map[string]string{contract.AnnClaimUID: otherUID})
	source := skeleton()
	source.Name = contract.PVName(otherUID)
	source.Annotations = map[string]string{contract.AnnClaimUID: otherUID, "flex-provisioner.io/cinder-volume-id": id}
	source.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "shop", Name: "original", UID: otherUID}
	if edit != nil {
		edit(source)
	}
	if err := w.kube.Tracker().Add(source); err != nil {
		t.Fatal(err)
	}
	return id
}

func fromOriginal(properties map[string]string) func(*contract.Request) {
	return func(r *contract.Request) {
		r.Source = &contract.Source{
			Kind: contract.SourceClaim, Namespace: "shop", Name: "original", UID: otherUID, PVName: contract.PVName(otherUID),
		}
		maps.Copy(r.Properties, properties)
	}
}

// own returns the claim's volume.
func (w *world) own(t *testing.T) cindertest.View {
	t.Helper()
	for _, v := range w.cinder.Volumes() {
		if v.Metadata[contract.AnnClaimUID] == uid {
			return v
		}
	}
	t.Fatal("the claim has no volume")
	return cindertest.View{}
}

// A class makes clones if it has the parameter at all, as in the older provisioner, unless that
// says no.
func TestClassWithTheParameterSmartcloneMakesClones(t *testing.T) {
	for _, value := range []string{"", "true", "enabled", "1"} {
		t.Run(value, func(t *testing.T) {
			w := newWorld(t)
			id := w.addSource(t, nil)
			w.wantCode(t, w.run(t, w.request(contract.Provision, fromOriginal(map[string]string{"smartclone": value})), skeleton()), contract.ExitDone)
			if got := w.own(t).Source; got != id {
				t.Errorf("the volume is a clone of %q", got)
			}
		})
	}
}

// The volume of the source claim's PV is cloned, and the new PV says so.
func TestCloneIsRecordedOnThePV(t *testing.T) {
	w := newWorld(t)
	id := w.addSource(t, nil)
	result := w.run(t, w.request(contract.Provision, fromOriginal(map[string]string{"smartclone": "true"})), skeleton())
	if result.Code != contract.ExitDone {
		t.Fatalf("%+v", result)
	}
	if v := w.own(t); v.Source != id || v.SizeGiB != 3 {
		t.Errorf("the volume is %+v", v)
	}
	for _, made := range w.pvs(t) {
		if made.Name == pvName && made.Annotations["flex-provisioner.io/clone-of"] != "shop/original" {
			t.Errorf("annotations %v", made.Annotations)
		}
	}
}

// A clone has content; an empty volume has nothing to read.
func TestOnlyAVolumeWithContentHasManyReaders(t *testing.T) {
	w := newWorld(t)
	w.addSource(t, nil)
	many := skeleton(corev1.ReadOnlyMany)
	result := w.run(t, w.request(contract.Provision,
		fromOriginal(map[string]string{"smartclone": "1", "write-initiator": "false"})), many)
	if result.Code != contract.ExitDone {
		t.Fatalf("%+v", result)
	}
	if result = w.run(t, w.request(contract.Provision, nil), skeleton(corev1.ReadOnlyMany)); result.Code != contract.ExitDone {
		t.Errorf("a rerun: %+v", result)
	}
	for _, made := range w.pvs(t) {
		if made.Name == pvName && !slices.Equal(made.Spec.MountOptions, []string{"nouuid", "ro", "norecovery"}) {
			t.Errorf("nodes mount it by %v", made.Spec.MountOptions)
		}
	}
}

func TestCloneIsRefused(t *testing.T) {
	yes := map[string]string{"smartclone": "true"}
	const addSmartclone = `add smartclone: "true" and data-sources: PersistentVolumeClaim to the data of its ConfigMap`
	tests := map[string]struct {
		edit   func(*contract.Request)
		source func(*corev1.PersistentVolume)
		code   int
		reason string
	}{
		"no smartclone":       {fromOriginal(nil), nil, contract.ExitBadRequest, addSmartclone},
		"smartclone is no":    {fromOriginal(map[string]string{"smartclone": "No"}), nil, contract.ExitBadRequest, addSmartclone},
		"smartclone is false": {fromOriginal(map[string]string{"smartclone": "false"}), nil, contract.ExitBadRequest, addSmartclone},
		"asked by annotation, not resolved": {
			func(r *contract.Request) {
				maps.Copy(r.Properties, yes)
				r.Annotations = map[string]string{contract.AnnCloneRequest: "shop/original"}
			}, nil, contract.ExitBadRequest, `claim "shop/original" cannot be cloned`,
		},
		"another kind": {
			func(r *contract.Request) { fromOriginal(yes)(r); r.Source.Kind = "VolumeSnapshot" }, nil,
			contract.ExitBadRequest, "a VolumeSnapshot cannot be cloned",
		},
		"a class with a snapshot of its own": {
			fromOriginal(map[string]string{"smartclone": "true", "snapshot": cindertest.Snapshot}), nil,
			contract.ExitBadRequest, "from its own snapshot",
		},
		"a volume that is adopted": {
			fromOriginal(map[string]string{"smartclone": "true", "adopt": "shop/data: 7b8f27c5-1f0e-4c11-9a55-0d8f6a3c1b2e"}), nil,
			contract.ExitBadRequest, "key adopt assigns volume 7b8f27c5-1f0e-4c11-9a55-0d8f6a3c1b2e to the claim, which requests a clone, too",
		},
		"not bound": {
			func(r *contract.Request) { fromOriginal(yes)(r); r.Source.PVName = "" }, nil, contract.ExitBadRequest, "is not bound",
		},
		"no PV": {
			func(r *contract.Request) { fromOriginal(yes)(r); r.Source.PVName = "pvc-x" }, nil, contract.ExitBadRequest, "pvc-x does not exist",
		},
		"another claim's PV": {
			fromOriginal(yes), func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.Namespace = "bank" },
			contract.ExitBadRequest, "is not bound to it",
		},
		"a later claim of the same name": {
			fromOriginal(yes), func(v *corev1.PersistentVolume) { v.Spec.ClaimRef.UID = uid },
			contract.ExitBadRequest, "is not bound to it",
		},
		"a dispatcher that does not say which claim": {
			func(r *contract.Request) { fromOriginal(yes)(r); r.Source.UID = "" }, nil,
			contract.ExitBadRequest, "is not bound to it",
		},
		"another class": {
			fromOriginal(yes), func(v *corev1.PersistentVolume) { v.Spec.StorageClassName = "gold" },
			contract.ExitBadRequest, `its volume has the storage class "gold"`,
		},
		"another provisioner's": {
			fromOriginal(yes), func(v *corev1.PersistentVolume) { delete(v.Annotations, "flex-provisioner.io/cinder-volume-id") },
			contract.ExitBadRequest, "not provisioned by this provisioner",
		},
		"a volume that is gone": {
			fromOriginal(yes), func(v *corev1.PersistentVolume) { v.Annotations["flex-provisioner.io/cinder-volume-id"] = "x" },
			contract.ExitBadRequest, "is not in this storage",
		},
		"another claim's volume": {
			fromOriginal(yes), func(v *corev1.PersistentVolume) { v.Annotations[contract.AnnClaimUID] = "2222" },
			contract.ExitBadRequest, "does not belong to the source claim",
		},
		"another type": {
			fromOriginal(map[string]string{"smartclone": "true", "type": cindertest.TypeRBD}), nil,
			contract.ExitBadRequest, `the source has the volume type "plain"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.addSource(t, tc.source)
			result := w.run(t, w.request(contract.Provision, tc.edit), skeleton())
			if claim := contract.ForClaim(result.Message); result.Code != tc.code || !strings.Contains(claim, tc.reason) {
				t.Errorf("code %d, %s", result.Code, result.Message)
			}
			if len(w.cinder.Volumes()) != 1 {
				t.Errorf("left %v", w.cinder.Volumes())
			}
		})
	}
}

// A clone contains all of its source.
func TestCloneSmallerThanItsSourceIsRefused(t *testing.T) {
	w := newWorld(t)
	id := w.addSource(t, nil)
	w.cinder.Resize(id, 9)
	result := w.run(t, w.request(contract.Provision, fromOriginal(map[string]string{"smartclone": "true"})), skeleton())
	if result.Code != contract.ExitBadRequest || !strings.Contains(result.Message, "the source has 9 GiB, and the claim requests 3 GiB") {
		t.Errorf("%+v", result)
	}
}

// Every volume of such a class is filled.
func TestSnapshotOfTheClassFillsTheVolume(t *testing.T) {
	w := newWorld(t)
	fill := func(r *contract.Request) { r.Properties["snapshot"] = cindertest.Snapshot }
	if result := w.run(t, w.request(contract.Provision, fill), skeleton()); result.Code != contract.ExitDone {
		t.Fatalf("%+v", result)
	}
	if v := w.own(t); v.Snapshot != cindertest.Snapshot {
		t.Errorf("the volume is %+v", v)
	}
}

// A user asks for a clone after a run has created an empty volume. The exit code does not say that
// nothing was made: the volume is deleted with the claim, and the next claim gets its clone.
func TestEmptyVolumeOfAnEarlierRunIsNeverACloneNorForgotten(t *testing.T) {
	w := newWorld(t)
	source := w.addSource(t, nil)
	isAway := true
	w.kube.PrependReactor("create", "persistentvolumes", func(kubetesting.Action) (bool, runtime.Object, error) {
		return isAway, nil, errors.New("connection refused")
	})
	w.wantCode(t, w.provision(t), contract.ExitTempFail)
	isAway = false
	empty := w.own(t)
	clone := w.request(contract.Provision, fromOriginal(map[string]string{"smartclone": "true"}))
	result := w.run(t, clone, skeleton())
	w.wantCode(t, result, contract.ExitBadRequest)
	if contract.VerdictOf(result.Code).MadeNothing() {
		t.Errorf("exit code %d says that nothing was made", result.Code)
	}
	for _, part := range []string{empty.ID, "it is an empty volume, and a clone of " + source + " is requested", "Remedy: delete the claim"} {
		if claim := contract.ForClaim(result.Message); !strings.Contains(claim, part) {
			t.Errorf("the claim's user is not told %q: %s", part, claim)
		}
	}
	if now := w.own(t); now.ID != empty.ID || !now.Exported || len(w.pvs(t)) != 1 {
		t.Errorf("the volume is %+v, PVs %v", now, w.pvs(t))
	}
	undo := w.request(contract.Delete, func(r *contract.Request) { r.Undo = true })
	w.wantCode(t, w.run(t, undo, skeleton()), contract.ExitDone)
	if len(w.cinder.Volumes()) != 1 {
		t.Errorf("the undo left %v", w.cinder.Volumes())
	}
	w.wantCode(t, w.run(t, clone, skeleton()), contract.ExitDone)
	if now := w.own(t); now.Source != source {
		t.Errorf("the volume is %+v", now)
	}
}
