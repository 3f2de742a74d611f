package run_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// retained provisions another claim, whose PV then has a phase and a policy, and names its volume for
// the claim. It returns the PV.
func (w *world) retained(t *testing.T, phase corev1.PersistentVolumePhase, policy corev1.PersistentVolumeReclaimPolicy) *corev1.PersistentVolume {
	t.Helper()
	object := skeleton()
	object.Name, object.Annotations[contract.AnnClaimUID], object.Spec.ClaimRef.UID = contract.PVName(otherUID), otherUID, otherUID
	w.wantCode(t, w.run(t, w.request(contract.Provision, func(r *contract.Request) { r.UID, r.PVName = otherUID, object.Name }), object), contract.ExitDone)
	former := &w.pvs(t)[0]
	former.Status.Phase, former.Spec.PersistentVolumeReclaimPolicy = phase, policy
	w.edit(t, former)
	w.also = map[string]string{"adopt": "shop/data: " + w.cinder.Volumes()[0].ID}
	return former
}

// edit changes a PV without a request.
func (w *world) edit(t *testing.T, of *corev1.PersistentVolume) {
	t.Helper()
	if err := w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("persistentvolumes"), of, "", metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// wantFormers fails the test if the only volume is no longer the former claim's, or its export has
// ended.
func (w *world) wantFormers(t *testing.T, before cindertest.View) {
	t.Helper()
	if now := w.cinder.Volumes()[0]; now.Status != before.Status || now.Metadata[contract.AnnClaimUID] != otherUID {
		t.Errorf("the volume is %+v", now)
	}
}

// A claim that is created again takes the volume that its former PV retained. The volume is exported
// anew, so the PV has what the storage says today. The message says what has changed.
func TestAClaimTakesTheVolumeOfARetainedPV(t *testing.T) {
	for _, api := range []volume.Method{cinder.Attachments, cinder.Reserve} {
		t.Run(string(api), func(t *testing.T) {
			w := newWorld(t)
			w.api = api
			former := w.retained(t, corev1.VolumeReleased, corev1.PersistentVolumeReclaimRetain)
			w.also["multipath"] = "true" // the storage then says more portals
			result := w.provision(t)
			w.wantCode(t, result, contract.ExitDone)
			pvs := w.pvs(t)
			if len(pvs) != 2 || len(w.cinder.Volumes()) != 1 || w.own(t).Metadata[contract.AnnClaimUID] != uid {
				t.Fatalf("%d PVs, volumes %+v", len(pvs), w.cinder.Volumes())
			}
			made := pvs[slices.IndexFunc(pvs, func(one corev1.PersistentVolume) bool { return one.Name == pvName })]
			if len(made.Spec.ISCSI.Portals) != 1 || made.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimRetain {
				t.Errorf("%+v", made.Spec)
			}
			want := "the volume has left PersistentVolume " + former.Name + " for " + pvName + ": iscsi.portals was none, is [127.0.0.2:3260]\n"
			if result.Message != want {
				t.Errorf("message %q, want %q", result.Message, want)
			}
			if all := w.cinder.Attachments(); api == cinder.Attachments && (len(all) != 1 || all[0] == former.Annotations["flex-provisioner.io/cinder-attachment-id"]) {
				t.Errorf("attached %+v", all)
			}
			// The former PV no longer reaches the volume: neither does a deletion that it asks for.
			w.wantCode(t, w.run(t, w.request(contract.Delete, func(r *contract.Request) { r.UID, r.PVName = otherUID, former.Name }), former), contract.ExitConfig)
			if w.own(t).Status != "in-use" {
				t.Errorf("the volume is %+v", w.own(t))
			}
		})
	}
}

func TestAClaimDoesNotTakeTheVolumeOfAPVThatIsNotRetained(t *testing.T) {
	for name, tc := range map[string]struct {
		phase  corev1.PersistentVolumePhase
		policy corev1.PersistentVolumeReclaimPolicy
	}{
		"bound":            {corev1.VolumeBound, corev1.PersistentVolumeReclaimRetain},
		"available":        {corev1.VolumeAvailable, corev1.PersistentVolumeReclaimRetain},
		"about to be gone": {corev1.VolumeReleased, corev1.PersistentVolumeReclaimDelete},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			former := w.retained(t, tc.phase, tc.policy)
			before := w.cinder.Volumes()[0]
			result := w.provision(t)
			w.wantCode(t, result, contract.ExitBadRequest)
			if want := "it is the volume of PersistentVolume " + former.Name + ", which has the reclaim policy " + string(tc.policy) + " and the phase " + string(tc.phase); !strings.Contains(result.Message, want) {
				t.Errorf("message %q, want %q", result.Message, want)
			}
			w.wantFormers(t, before)
		})
	}
}

// A line of adopt outlives its claim. Whoever may create a claim of its namespace and name would take
// another tenant's data.
func TestAClaimDoesNotTakeTheRetainedVolumeOfAClaimOfAnotherNamespaceOrName(t *testing.T) {
	for _, claim := range []*corev1.ObjectReference{{Namespace: "bank", Name: "data", UID: otherUID}, {Namespace: "shop", Name: "ledger", UID: otherUID}, nil} {
		w := newWorld(t)
		w.api = cinder.Attachments
		former := w.retained(t, corev1.VolumeReleased, corev1.PersistentVolumeReclaimRetain)
		former.Spec.ClaimRef = claim
		w.edit(t, former)
		before := w.cinder.Volumes()[0]
		result := w.provision(t)
		w.wantCode(t, result, contract.ExitBadRequest)
		if want := "PersistentVolume " + former.Name + ", which is not that of an earlier claim"; !strings.Contains(contract.ForClaim(result.Message), want) {
			t.Errorf("%v: message %q, want %q", claim, result.Message, want)
		}
		w.wantFormers(t, before)
	}
}

// The export that the PV records may have ended long ago. Whoever uses the volume by now keeps it, and
// the volume keeps its marks until it is free.
func TestARetainedVolumeThatAnotherClientUsesKeepsItsMarksAndItsExport(t *testing.T) {
	const attachment = "flex-provisioner.io/cinder-attachment-id"
	gone := func(of *corev1.PersistentVolume) { of.Annotations[attachment] = "0badc0de-0000-4000-8000-000000000000" }
	tests := map[string]struct {
		api   volume.Method
		forge func(*corev1.PersistentVolume)
		take  func(s *cindertest.Server, id string)
		code  int
		says  string
	}{
		"by an attachment, and its own is gone": {cinder.Attachments, gone, nil, contract.ExitBadRequest, `its status is "in-use", not available (export `},
		"by an attachment, and its own is not noted": {
			cinder.Attachments, func(of *corev1.PersistentVolume) { delete(of.Annotations, attachment) }, nil, contract.ExitTempFail, `its status is "in-use"`,
		},
		"by a server": {
			cinder.Attachments, gone, func(s *cindertest.Server, id string) { s.AttachServer(id, "vm-1") }, contract.ExitBadRequest, "server vm-1",
		},
		"by another host": {
			cinder.Reserve, nil, func(s *cindertest.Server, id string) { s.AttachHost(id, "rescue", "/dev/vdb") }, contract.ExitBadRequest, "host rescue",
		},
		"for a transfer to another project": {
			cinder.Attachments, nil, func(s *cindertest.Server, id string) { s.SetStatus(id, "awaiting-transfer") }, contract.ExitTempFail, `its status is "awaiting-transfer"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.api = tc.api
			former := w.retained(t, corev1.VolumeReleased, corev1.PersistentVolumeReclaimRetain)
			if tc.forge != nil {
				tc.forge(former)
				w.edit(t, former)
			}
			if tc.take != nil {
				tc.take(w.cinder, w.cinder.Volumes()[0].ID)
			}
			before, attached := w.cinder.Volumes()[0], w.cinder.Attachments()
			result := w.provision(t)
			w.wantCode(t, result, tc.code)
			if !strings.Contains(contract.ForClaim(result.Message), tc.says) {
				t.Errorf("message %q, want %q", result.Message, tc.says)
			}
			w.wantFormers(t, before)
			if now := w.cinder.Attachments(); !slices.Equal(now, attached) {
				t.Errorf("attached %q, before %q", now, attached)
			}
		})
	}
}

// Killed at any request, the next run completes it: the volume has one export, and the claim its PV.
func TestTakingARetainedVolumeIsCompletedAfterAKillAtAnyRequest(t *testing.T) {
	for _, api := range []volume.Method{cinder.Attachments, cinder.Reserve} {
		t.Run(string(api), func(t *testing.T) {
			before := func(w *world) {
				w.api = api
				w.retained(t, corev1.VolumeReleased, corev1.PersistentVolumeReclaimRetain)
			}
			killEverywhere(t, cindertest.DropAnswer, before, (*world).provision, func(t *testing.T, w *world) {
				t.Helper()
				all := w.cinder.Volumes()
				if len(all) != 1 || all[0].Status != "in-use" || all[0].Metadata[contract.AnnClaimUID] != uid || len(w.pvs(t)) != 2 {
					t.Fatalf("%+v, %d PVs", all, len(w.pvs(t)))
				}
				if n := len(w.cinder.Attachments()); api == cinder.Attachments && n != 1 {
					t.Fatalf("%d attachments", n)
				}
			})
		})
	}
}

// The event about what differs is not lost with a run that was killed before it created the PV.
func TestARunThatWasKilledWhileItTookARetainedVolumeIsRepeatedWithItsMessage(t *testing.T) {
	for k := 1; ; k++ {
		w := newWorld(t)
		w.api = cinder.Attachments
		former := w.retained(t, corev1.VolumeReleased, corev1.PersistentVolumeReclaimRetain)
		if !w.kill(t, k, cindertest.DropAnswer, (*world).provision) || len(w.pvs(t)) == 2 {
			return
		}
		if result := w.provision(t); result.Code != contract.ExitDone || !strings.Contains(result.Message, "has left PersistentVolume "+former.Name) {
			t.Fatalf("after a kill at request %d: %+v", k, result)
		}
	}
}

// An adoption that fails, or is undone, gives the volume back to the claim that it was taken from:
// without its marks any line of adopt would get it.
func TestAnAdoptionThatFailsGivesARetainedVolumeBack(t *testing.T) {
	for _, api := range []volume.Method{cinder.Attachments, cinder.Reserve} {
		w := newWorld(t)
		w.api = api
		w.retained(t, corev1.VolumeReleased, corev1.PersistentVolumeReclaimRetain)
		before := w.cinder.Volumes()[0].Metadata
		right := maps.Clone(w.also)
		w.also["connection"], w.also["shared-lun"] = "fibre_channel", "true"
		for range 2 {
			w.wantCode(t, w.provision(t), contract.ExitConfig)
			now := w.cinder.Volumes()[0]
			for _, key := range []string{"claim-uid", "claim-namespace", "claim-name", "pv-name", "cluster-uid"} {
				if key = contract.Domain + key; now.Metadata[key] != before[key] {
					t.Errorf("%s is %q, and was %q", key, now.Metadata[key], before[key])
				}
			}
			if now.Status != "available" {
				t.Errorf("the volume is %+v", now)
			}
		}
		w.also = right
		w.wantCode(t, w.provision(t), contract.ExitDone)
	}
}

// The undo may be repeated, and know the volume by its PV.
func TestAnUndoGivesARetainedVolumeBack(t *testing.T) {
	w := newWorld(t)
	w.api = cinder.Attachments
	w.retained(t, corev1.VolumeReleased, corev1.PersistentVolumeReclaimRetain)
	w.wantCode(t, w.provision(t), contract.ExitDone)
	pvs := w.pvs(t)
	made := pvs[slices.IndexFunc(pvs, func(one corev1.PersistentVolume) bool { return one.Name == pvName })]
	made.DeletionTimestamp = new(metav1.Now())
	w.edit(t, &made)
	for range 2 {
		w.wantCode(t, w.run(t, w.request(contract.Delete, func(r *contract.Request) { r.Undo = true }), &made), contract.ExitDone)
		if now := w.cinder.Volumes()[0]; now.Status != "available" || now.Metadata[contract.AnnClaimUID] != otherUID {
			t.Errorf("the volume is %+v", now)
		}
	}
}
