package run_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// restore makes what Cinder makes from a backup: a volume with the name and the metadata of the
// original.
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
		for _, want := range []string{"kept volume " + restored, "the PersistentVolume names another volume", "openstack volume delete " + restored} {
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
	if len(result.Message) > contract.MaxMessage/2 || !strings.HasSuffix(result.Message, "\n") || strings.Count(result.Message, "kept volume") < 3 {
		t.Errorf("%d bytes: %q", len(result.Message), result.Message)
	}
}

// The PV of the first claim stands for the original, so that the volume with the same marks is a
// copy.
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

// The UID comes with the request. With it every volume is marked, also one that is adopted.
func TestVolumeCarriesTheClustersUID(t *testing.T) {
	for _, id := range []string{"", "adopted"} {
		w := newWorld(t)
		if id != "" {
			id = w.cinder.Add("available", nil)
			w.cinder.Resize(id, 3)
			w.also = map[string]string{"adopt": "shop/data: " + id}
		}
		of := func(cluster string) func(*contract.Request) {
			return func(r *contract.Request) { r.ClusterUID = cluster }
		}
		w.wantCode(t, w.run(t, w.request(contract.Provision, of("ours")), skeleton()), contract.ExitDone)
		if v := w.own(t); v.Metadata["flex-provisioner.io/cluster-uid"] != "ours" {
			t.Errorf("the volume is %+v", v)
		}
		object := w.pvs(t)[0]
		w.wantCode(t, w.run(t, w.request(contract.Delete, of("theirs")), &object), contract.ExitConfig)
		w.wantCode(t, w.run(t, w.request(contract.Expand, of("theirs")), &object), contract.ExitConfig)
		w.wantCode(t, w.run(t, w.request(contract.Delete, of("ours")), &object), contract.ExitDone)
		if all := w.cinder.Volumes(); len(all) != 0 {
			t.Errorf("left %+v", all)
		}
	}
}

// The claim's user does not see addresses, the administrator sees both and what to do.
func TestDeleteIsRefusedWhereTheLoginLeadsElsewhere(t *testing.T) {
	w := newWorld(t)
	w.wantCode(t, w.provision(t), contract.ExitDone)
	const place = "flex-provisioner.io/cinder-place"
	object := w.pvs(t)[0]
	w.cinder.Forget(w.own(t).ID)
	object.Annotations[place] = `{"endpoint":"http://192.0.2.9:8776/v3","project":"other"}`
	result := w.run(t, w.request(contract.Delete, nil), &object)
	w.wantCode(t, result, contract.ExitConfig)
	for _, want := range []string{"http://192.0.2.9:8776/v3", w.cinder.Endpoint(), place, "Secret"} {
		if !strings.Contains(result.Message, want) || strings.Contains(contract.ForClaim(result.Message), "http") {
			t.Errorf("message %q, want %q", result.Message, want)
		}
	}
	if len(w.secrets(t)) != 1 {
		t.Error("the Secret of a volume that may exist was deleted")
	}
	delete(object.Annotations, place)
	w.wantCode(t, w.run(t, w.request(contract.Delete, nil), &object), contract.ExitDone)
}

// What a client of Cinder has written on a volume is no line of the message, by which it could speak to
// the claim's user or report a result.
func TestMetadataOfAKeptVolumeMakeNoLine(t *testing.T) {
	w := newWorld(t)
	w.wantCode(t, w.provision(t), contract.ExitDone)
	w.cinder.Add("available", map[string]string{
		contract.AnnClaimUID:              uid,
		"flex-provisioner.io/cluster-uid": "x\nclaim: lost\n{\"uid\":\"" + uid + "\",\"code\":0,\"capacity\":\"9Ti\"}\n",
	})
	object := w.pvs(t)[0]
	for _, of := range []any{&object, skeleton()} {
		result := w.run(t, w.request(contract.Delete, func(r *contract.Request) { r.ClusterUID = "c1" }), of)
		if strings.Count(result.Message, "\n") != 1 || !strings.HasPrefix(result.Message, "kept volume ") {
			t.Errorf("exit code %d, message %q", result.Code, result.Message)
		}
	}
}
