package run_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/run"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// expand asks for 7 GiB.
func (w *world) expand(t *testing.T) run.Result {
	t.Helper()
	return w.run(t, w.request(contract.Expand, func(r *contract.Request) { r.Size = 7 << 30 }), &w.pvs(t)[0])
}

// A volume in use grows, exported by either method, twice.
func TestExpandReportsTheNewSize(t *testing.T) {
	for _, api := range []volume.Method{cinder.Attachments, cinder.Reserve} {
		w := newWorld(t)
		w.api = api
		w.provision(t)
		for range 2 {
			result := w.expand(t)
			if result.Code != contract.ExitDone || !strings.HasPrefix(result.Message, `{"uid":"`+uid+`","code":0,"capacity":7516192768,"pending":"the volume was expanded`) {
				t.Fatalf("%s: %+v", api, result)
			}
			claim := contract.ForClaim(result.Message)
			if !strings.HasSuffix(claim, "then expand the file system on the node by resize2fs or xfs_growfs") {
				t.Errorf("%s: the user reads %q", api, claim)
			}
			if v := w.own(t); v.SizeGiB != 7 || v.Status != "in-use" {
				t.Errorf("%s: the volume is %+v", api, v)
			}
		}
		w.deleteTwice(t)
	}
}

// The kubelet has a node plugin grow the file system while pods run, so nothing is to be done.
func TestExpandOfACSIVolumeAsksForNothing(t *testing.T) {
	w := newWorld(t)
	w.also, w.cephKey = map[string]string{"type": cindertest.TypeRBD, "cluster-id": "c"}, "QVFCa2V5"
	w.provision(t)
	result := w.expand(t)
	if claim := contract.ForClaim(result.Message); result.Code != contract.ExitDone || !strings.Contains(claim, "the kubelet") || strings.Contains(claim, "start") {
		t.Errorf("%+v", result)
	}
}

// csi-driver-nvmf looks for a device by a name that none has, and grows no file system.
func TestExpandOfAnNVMeVolumeIsRefusedBeforeItsDiskGrows(t *testing.T) {
	w := newWorld(t)
	w.also = map[string]string{"type": cindertest.TypeNVMe, "nqn": "nqn.2014-08.org.nvmexpress:uuid:nodes"}
	w.provision(t)
	before := w.own(t).SizeGiB
	result := w.expand(t)
	if result.Code != contract.ExitConfig || !strings.Contains(contract.ForClaim(result.Message), "csi-driver-nvmf cannot expand") {
		t.Errorf("%+v", result)
	}
	if size := w.own(t).SizeGiB; size != before {
		t.Errorf("the volume has %d GiB, before %d", size, before)
	}
}

// The volume has the new size and is in use, whatever request was the last.
func TestExpandKilledAtAnyRequestIsCompletedByTheNext(t *testing.T) {
	for _, api := range []volume.Method{cinder.Attachments, cinder.Reserve} {
		for name, fate := range map[string]cindertest.Fate{"lost": cindertest.DropRequest, "served": cindertest.DropAnswer} {
			t.Run(fmt.Sprintf("%s, %s", api, name), func(t *testing.T) {
				killEverywhere(t, fate, func(w *world) { w.api = api; w.provision(t) }, (*world).expand, func(t *testing.T, w *world) {
					t.Helper()
					one(t, w)
					if v := w.own(t); v.SizeGiB != 7 || v.Status != "in-use" {
						t.Fatalf("the volume is %+v", v)
					}
				})
			})
		}
	}
}

// Older images left the volumes of attach-api reserve in status attaching. A run may end at any
// request of this one.
func TestVolumeThatAnOlderImageReservedIsServedWhateverRequestWasTheLast(t *testing.T) {
	older := func(w *world) {
		w.api = cinder.Reserve
		w.provision(t)
		w.cinder.LeaveReserved(w.own(t).ID)
	}
	unnoted := func(w *world) {
		w.api = cinder.Reserve
		w.cinder.AddNamed(pvName, "attaching", map[string]string{contract.AnnClaimUID: uid})
	}
	inUse := func(t *testing.T, w *world) {
		t.Helper()
		one(t, w)
		if v := w.own(t); v.Status != "in-use" || !v.Exported || len(w.cinder.Attachments()) != 1 {
			t.Fatalf("the volume is %+v", v)
		}
	}
	for name, fate := range map[string]cindertest.Fate{"lost": cindertest.DropRequest, "served": cindertest.DropAnswer} {
		t.Run("provision, "+name, func(t *testing.T) { killEverywhere(t, fate, unnoted, (*world).provision, inUse) })
		t.Run("expand, "+name, func(t *testing.T) { killEverywhere(t, fate, older, (*world).expand, inUse) })
		t.Run("delete, "+name, func(t *testing.T) { killEverywhere(t, fate, older, (*world).remove, none) })
	}
}

// The message is the storage's own.
func TestExpandRefusesAnotherClaimsVolume(t *testing.T) {
	w := newWorld(t)
	w.provision(t)
	other := w.cinder.Add("available", map[string]string{contract.AnnClaimUID: otherUID})
	object := w.pvs(t)[0]
	object.Annotations["flex-provisioner.io/cinder-volume-id"] = other
	result := w.run(t, w.request(contract.Expand, func(r *contract.Request) { r.Size = 7 << 30 }), &object)
	if result.Code != contract.ExitConfig || !strings.Contains(result.Message, "belongs to claim") {
		t.Errorf("%+v", result)
	}
	w.cinder.SetStatus(w.own(t).ID, "error_extending")
	if result := w.expand(t); result.Code != contract.ExitUnavailable || !strings.Contains(result.Message, "error_extending") {
		t.Errorf("%+v", result)
	}
}

// The list is read page by page.
func TestListWritesALineForEachVolumeOfTheCluster(t *testing.T) {
	w := newWorld(t)
	w.cinder.Page = 2
	for i, cluster := range []string{"it_s one", "it_s one", "two", "it_s one"} {
		w.cinder.Add("available", map[string]string{
			contract.AnnClaimUID: fmt.Sprint("uid-", i), "flex-provisioner.io/cluster": cluster, "flex-provisioner.io/claim-name": "data",
			"flex-provisioner.io/cluster-uid": fmt.Sprint("c-", i),
		})
	}
	w.cinder.Add("available", nil)
	line := regexp.MustCompile(`^{"uid":"uid-2","volume":"00000003-0000-4000-8000-000000000000","size":1073741824,"claimName":"data","clusterUID":"c-2",` +
		`"createdAt":"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ","name":"outside","status":"available",`)
	for cluster, want := range map[string]int{"it's one": 3, "two": 1, "": 4, "none": 0} {
		result := w.run(t, w.request(contract.List, func(r *contract.Request) { r.Properties["cluster"] = cluster }), skeleton())
		said, _ := contract.DecodeListEnd(result.Message)
		if result.Code != contract.ExitDone || strings.Count(result.Output, "\n") != want || said != want {
			t.Errorf("cluster %q: %+v", cluster, result)
		}
		if want == 1 && !line.MatchString(result.Output) {
			t.Error(result.Output)
		}
	}
}

// The config names the volume for the claim.
func TestAdoptedVolumeBecomesTheClaims(t *testing.T) {
	w := newWorld(t)
	id := w.cinder.Add("available", map[string]string{"kept": "yes"})
	w.cinder.Resize(id, 5)
	result := w.run(t, w.request(contract.Provision, adopt("shop/other: x\nshop/data: "+id+" # the old one\n")), skeleton())
	if result.Code != contract.ExitDone {
		t.Fatalf("%+v", result)
	}
	v := w.own(t)
	if len(w.cinder.Volumes()) != 1 || v.ID != id || v.Metadata["kept"] != "yes" || v.Status != "in-use" {
		t.Errorf("the volume is %+v", v)
	}
	if size := w.pvs(t)[0].Spec.Capacity[corev1.ResourceStorage]; size.String() != "5Gi" {
		t.Errorf("the PV has %s", &size)
	}
	w.deleteTwice(t)
}

func adopt(lines string) func(*contract.Request) {
	return func(r *contract.Request) { r.Properties["adopt"] = lines }
}

// The undo of an unfinished provision does not delete a volume that existed before.
func TestUnfinishedAdoptionIsUndoneWithoutDeleting(t *testing.T) {
	kept := func(t *testing.T, w *world) {
		t.Helper()
		all := w.cinder.Volumes()
		if len(all) != 1 || all[0].Status != "available" || all[0].Metadata[contract.AnnClaimUID] != "" || all[0].Metadata["kept"] != "yes" {
			t.Errorf("left %+v", all)
		}
	}
	w := newWorld(t)
	id := w.cinder.Add("available", map[string]string{"kept": "yes"})
	w.cinder.Resize(id, 5)
	w.forbid("secrets")
	if result := w.run(t, w.request(contract.Provision, adopt("shop/data: "+id)), skeleton()); result.Code != contract.ExitConfig {
		t.Errorf("%+v", result)
	}
	kept(t, w)

	w = newWorld(t)
	id = w.cinder.Add("available", map[string]string{"kept": "yes"})
	w.cinder.Resize(id, 5)
	w.also = map[string]string{"adopt": "shop/data: " + id}
	w.kill(t, 7, cindertest.DropAnswer, (*world).provision)
	if w.own(t).ID != id {
		t.Fatal("the run was killed before it adopted anything")
	}
	if result := w.remove(t); result.Code != contract.ExitDone {
		t.Errorf("%+v", result)
	}
	kept(t, w)
}

func TestAdoptionIsRefused(t *testing.T) {
	tests := map[string]struct {
		setup  func(*world) string
		code   int
		reason string
	}{
		"no such volume": {func(*world) string { return "shop/data: x" }, contract.ExitBadRequest, "it does not exist"},
		"another claim's": {func(w *world) string {
			return "shop/data: " + w.cinder.Add("available", map[string]string{contract.AnnClaimUID: otherUID})
		}, contract.ExitBadRequest, "it belongs to claim " + otherUID},
		"in use":    {func(w *world) string { return "shop/data: " + w.cinder.Add("in-use", nil) }, contract.ExitBadRequest, `status is "in-use"`},
		"too small": {func(w *world) string { return "shop/data: " + w.cinder.Add("available", nil) }, contract.ExitBadRequest, "its size is 1 GiB, and the claim requests 3"},
		"no line":   {func(*world) string { return "data x" }, contract.ExitConfig, "NAMESPACE/CLAIM: VOLUME-ID"},
		"twice":     {func(*world) string { return "shop/data: x\nshop/data: y" }, contract.ExitConfig, "another line names"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			lines := tc.setup(w)
			before := len(w.cinder.Volumes())
			result := w.run(t, w.request(contract.Provision, adopt(lines)), skeleton())
			if result.Code != tc.code || !strings.Contains(result.Message, tc.reason) || len(w.cinder.Volumes()) != before {
				t.Errorf("code %d, %s", result.Code, result.Message)
			}
		})
	}
}

// adopted returns a world with a volume that the claim has adopted, and a PV for it.
func adopted(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	id := w.cinder.Add("available", map[string]string{"kept": "yes"})
	w.cinder.Resize(id, 5)
	w.also = map[string]string{"adopt": "shop/data: " + id}
	object := skeleton()
	object.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	w.wantCode(t, w.run(t, w.request(contract.Provision, nil), object), contract.ExitDone)
	return w
}

// The data are older than the claim, and outlive it unless an administrator says otherwise.
func TestAdoptedVolumeIsRetainedWhateverTheClassSays(t *testing.T) {
	if policy := adopted(t).pvs(t)[0].Spec.PersistentVolumeReclaimPolicy; policy != corev1.PersistentVolumeReclaimRetain {
		t.Errorf("the PV's policy is %s", policy)
	}
	w := newWorld(t)
	object := skeleton()
	object.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimDelete
	w.wantCode(t, w.run(t, w.request(contract.Provision, nil), object), contract.ExitDone)
	if policy := w.pvs(t)[0].Spec.PersistentVolumeReclaimPolicy; policy != corev1.PersistentVolumeReclaimDelete {
		t.Errorf("the policy of the PV of a new volume is %s", policy)
	}
}

// takeBack undoes a provision whose PV no claim was ever bound to, as the dispatcher asks for it:
// with the real PV, which is terminating.
func (w *world) takeBack(t *testing.T) run.Result {
	t.Helper()
	return w.run(t, w.request(contract.Delete, func(r *contract.Request) { r.Undo = true }), &w.pvs(t)[0])
}

func (w *world) deletePV(t *testing.T) {
	t.Helper()
	object := w.pvs(t)[0]
	object.UID, object.DeletionTimestamp = "the-pv", new(metav1.Now())
	if err := w.kube.Tracker().Update(corev1.SchemeGroupVersion.WithResource("persistentvolumes"), &object, ""); err != nil {
		t.Fatal(err)
	}
}

// It is released also after a run that ended at any request.
func TestAdoptedVolumeOfAPVThatIsTakenBackIsReleased(t *testing.T) {
	for k := 1; ; k++ {
		w := adopted(t)
		w.deletePV(t)
		killed := w.kill(t, k, cindertest.DropAnswer, (*world).takeBack)
		w.wantCode(t, w.takeBack(t), contract.ExitDone)
		all := w.cinder.Volumes()
		if len(all) != 1 || all[0].Status != "available" || all[0].Metadata[contract.AnnClaimUID] != "" || all[0].Metadata["kept"] != "yes" || len(w.secrets(t)) != 0 {
			t.Fatalf("after a kill at request %d: left %+v and %d Secrets", k, all, len(w.secrets(t)))
		}
		if !killed {
			return
		}
	}
}

// A PV that is not being deleted is in use, whoever asks.
func TestUndoIsRefusedWhileItsPVIsNotBeingDeleted(t *testing.T) {
	w := adopted(t)
	if result := w.takeBack(t); result.Code == contract.ExitDone || len(w.secrets(t)) == 0 {
		t.Errorf("%+v", result)
	}
}
