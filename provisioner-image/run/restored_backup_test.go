package run_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// restore makes what Cinder makes from a backup: a volume with the name and the metadata of the original.
func (w *world) restore(t *testing.T) string {
	t.Helper()
	own := w.own(t)
	id := w.cinder.AddNamed(own.Name, "available", maps.Clone(own.Metadata))
	w.cinder.Resize(id, own.SizeGiB)
	return id
}

func TestRestoredBackupOutlivesItsClaimAndIsReported(t *testing.T) {
	w := newWorld(t)
	w.wantCode(t, w.provision(t), contract.ExitDone)
	restored := w.restore(t)
	for range 2 {
		result := w.remove(t)
		w.wantCode(t, result, contract.ExitDone)
		for _, want := range []string{"left volume " + restored, "the PersistentVolume stands for volume", "openstack volume delete " + restored} {
			if !strings.Contains(result.Message, want) || !strings.Contains(w.printed.String(), restored) {
				t.Errorf("message %q, want %q", result.Message, want)
			}
		}
	}
	if all := w.cinder.Volumes(); len(all) != 1 || all[0].ID != restored {
		t.Errorf("left %+v", all)
	}
}

// The report must leave room for the message of the run itself.
func TestReportOfManyVolumesIsCutBetweenLines(t *testing.T) {
	w := newWorld(t)
	w.cinder.Quota = 100
	w.wantCode(t, w.provision(t), contract.ExitDone)
	own := w.own(t)
	for range 50 {
		w.cinder.AddNamed(own.Name, "available", maps.Clone(own.Metadata))
	}
	result := w.remove(t)
	if len(result.Message) > contract.MaxMessage/2 || !strings.HasSuffix(result.Message, "\n") || strings.Count(result.Message, "left volume") < 3 {
		t.Errorf("%d bytes: %q", len(result.Message), result.Message)
	}
}

// The PV of the first claim stands for the original, so that the volume with the same marks is a copy.
func TestRestoredBackupIsAdoptedByAnotherClaim(t *testing.T) {
	w := newWorld(t)
	w.wantCode(t, w.provision(t), contract.ExitDone)
	original := w.own(t).ID
	restored := w.restore(t)
	object := skeleton()
	object.Name, object.Annotations[contract.AnnClaimUID] = contract.PVName(otherUID), otherUID
	of := func(id string) func(*contract.Request) {
		return func(r *contract.Request) {
			r.UID, r.PVName, r.Properties["adopt"] = otherUID, object.Name, "shop/data: "+id
		}
	}
	w.wantCode(t, w.run(t, w.request(contract.Provision, of(original)), object), contract.ExitBadRequest)
	w.wantCode(t, w.run(t, w.request(contract.Provision, of(restored)), object), contract.ExitDone)
	for _, v := range w.cinder.Volumes() {
		if owner := v.Metadata[contract.AnnClaimUID]; (v.ID == restored) != (owner == otherUID) {
			t.Errorf("volume %s belongs to %s", v.ID, owner)
		}
	}
}
