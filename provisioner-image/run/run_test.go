package run_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubetesting "k8s.io/client-go/testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

func TestProvisionAndDelete(t *testing.T) {
	w := newWorld(t)
	if result := w.provision(t); result.Code != contract.ExitDone || result.Message != "" {
		t.Fatalf("%+v", result)
	}
	v := w.cinder.Volumes()[0]
	want := skeleton()
	want.ManagedFields = w.pvs(t)[0].ManagedFields
	want.Annotations["flex-provisioner.io/cinder-volume-id"] = v.ID
	want.Annotations["flex-provisioner.io/cinder-attach-api"] = "reserve"
	want.Annotations["flex-provisioner.io/cinder-connector"] = `{"initiator":"iqn.2026-11.io.flex-provisioner:nodes",` +
		`"host":"flex-provisioner","platform":"x86_64","os_type":"linux","multipath":false}`
	want.Annotations["flex-provisioner.io/cinder-place"] = `{"endpoint":"` + w.cinder.Endpoint() + `","project":"admin"}`
	want.Annotations["flex-provisioner.io/secret"] = namespace + "/" + pvName
	want.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse("3Gi")
	want.Spec.ISCSI = &corev1.ISCSIPersistentVolumeSource{
		TargetPortal: "127.0.0.1:3260", IQN: "iqn.2010-10.org.openstack:volume-" + v.ID, Lun: 1, FSType: "xfs",
		SessionCHAPAuth: true, SecretRef: &corev1.SecretReference{Namespace: namespace, Name: pvName},
		InitiatorName: new("iqn.2026-11.io.flex-provisioner:nodes"),
	}
	if diff := cmp.Diff(*want, w.pvs(t)[0]); diff != "" {
		t.Error(diff)
	}
	if v.SizeGiB != 3 || v.Status != "in-use" || v.Metadata[contract.AnnClaimUID] != uid || v.Type != cindertest.TypePlain {
		t.Errorf("the volume is %+v", v)
	}
	s := w.secrets(t)[0]
	if s.Namespace != namespace || s.Name != pvName || s.Labels[contract.LabelClaimUID] != uid ||
		string(s.Data["node.session.auth.password"]) != cindertest.Password(v.ID) {
		t.Errorf("the Secret is %+v", s.ObjectMeta)
	}
	w.deleteTwice(t)
}

func (w *world) deleteTwice(t *testing.T) {
	t.Helper()
	for range 2 {
		if result := w.remove(t); result.Code != contract.ExitDone {
			t.Fatalf("%+v", result)
		}
		if len(w.cinder.Volumes()) != 0 || len(w.secrets(t)) != 0 {
			t.Errorf("left %v and %d Secrets", w.cinder.Volumes(), len(w.secrets(t)))
		}
	}
}

// A Secret of an earlier connection may hold another password.
func TestSecretIsReplaced(t *testing.T) {
	w := newWorld(t)
	old := &corev1.Secret{}
	old.Namespace, old.Name = namespace, pvName
	if err := w.kube.Tracker().Add(old); err != nil {
		t.Fatal(err)
	}
	w.provision(t)
	if all := w.secrets(t); len(all) != 1 || len(all[0].Data) != 2 {
		t.Errorf("Secrets: %v", all)
	}
}

// What a run made without creating a PV is removed.
func TestUndo(t *testing.T) {
	for _, status := range []string{"creating", "available", "attaching", "error"} {
		w := newWorld(t)
		w.cinder.AddNamed(pvName, status, map[string]string{contract.AnnClaimUID: uid})
		if result := w.remove(t); result.Code != contract.ExitDone || len(w.cinder.Volumes()) != 0 {
			t.Errorf("from %s: %+v, left %v", status, result, w.cinder.Volumes())
		}
	}
}

// The claim's user is shown the sentence. After a verdict that is not tried again soon nothing is
// left.
func TestFailureBecomesExitCodeAndSentence(t *testing.T) {
	typed := func(name string) func(*contract.Request) {
		return func(r *contract.Request) { r.Properties = map[string]string{"type": name} }
	}
	tests := map[string]struct {
		edit  func(*contract.Request)
		mode  corev1.PersistentVolumeAccessMode
		setup func(*world)
		code  int
		claim string
	}{
		"unknown type": {
			edit: typed("gold"), code: contract.ExitConfig,
			claim: `storage class "silver" with volume type "gold": Cinder could not create volume pvc-` + uid +
				": Volume type with name gold could not be found. (request req-",
		},
		"no room": {
			edit: typed(cindertest.TypeFull), code: contract.ExitCapacity,
			claim: "Could not find any available weighted backend.",
		},
		"quota": {
			setup: func(w *world) { w.cinder.Quota = 0 }, code: contract.ExitCapacity,
			claim: "Maximum number of volumes allowed (0) exceeded",
		},
		"many nodes": {mode: corev1.ReadWriteMany, code: contract.ExitBadRequest, claim: "ReadWriteMany is not supported"},
		"encrypted":  {edit: typed(cindertest.TypeEncrypted), code: contract.ExitConfig, claim: "choose a type without encryption"},
		"unmappable": {edit: typed(cindertest.TypeNFS), code: contract.ExitConfig, claim: `connected by "nfs"`},
		"bad config": {
			edit: func(r *contract.Request) { r.Properties["tpye"] = "x" }, code: contract.ExitConfig,
			claim: `storage class "silver" is not set up correctly`,
		},
		"no connector": {
			edit: func(r *contract.Request) { r.Properties["initiator"] = "" }, code: contract.ExitConfig,
			claim: "Connector doesn't have required information: initiator",
		},
		"Kubernetes forbids Secrets": {
			setup: func(w *world) { w.forbid("secrets") }, code: contract.ExitConfig, claim: "Kubernetes refused",
		},
		"Kubernetes forbids PVs": {
			setup: func(w *world) { w.forbid("persistentvolumes") }, code: contract.ExitConfig, claim: "Kubernetes refused",
		},
		"Cinder down": {
			setup: func(w *world) { w.cinder.Close() }, code: contract.ExitUnavailable,
			claim: "the server does not answer; it is tried again",
		},
		"the PV of another claim": {
			setup: func(w *world) { w.addPV("other", "1") }, code: contract.ExitTempFail, claim: "it is tried again",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tc.setup != nil {
				tc.setup(w)
			}
			object := skeleton()
			if tc.mode != "" {
				object = skeleton(tc.mode)
			}
			result := w.run(t, w.request(contract.Provision, tc.edit), object)
			if claim := contract.ForClaim(result.Message); result.Code != tc.code || !strings.Contains(claim, tc.claim) {
				t.Errorf("code %d, %s", result.Code, result.Message)
			}
			if lines := strings.Count(result.Message, "\n"); lines != 2 {
				t.Errorf("%d lines: %s", lines, result.Message)
			}
			if len(w.cinder.Volumes()) != 0 || len(w.secrets(t)) != 0 {
				t.Errorf("left %v and %d Secrets", w.cinder.Volumes(), len(w.secrets(t)))
			}
		})
	}
}

// forbid refuses to create a resource, as RBAC does.
func (w *world) forbid(kind string) {
	w.kube.PrependReactor("create", kind, func(a kubetesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(a.GetResource().GroupResource(), pvName, errors.New("RBAC"))
	})
}

// addPV creates a PV of the claim's name for a volume, as another run would.
func (w *world) addPV(owner, volumeID string) {
	other := skeleton()
	other.Annotations[contract.AnnClaimUID] = owner
	other.Annotations["flex-provisioner.io/cinder-volume-id"] = volumeID
	if err := w.kube.Tracker().Add(other); err != nil {
		panic(err)
	}
}

// An exit code that promises "nothing was made" would be wrong.
func TestFailedRollbackIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.forbid("secrets")
	deny := false
	inner := w.cinder.Gate
	w.cinder.Gate = func(r *http.Request) cindertest.Fate {
		deny = deny || r.Method == http.MethodDelete
		if deny {
			return cindertest.DropRequest
		}
		return inner(r)
	}
	if result := w.provision(t); result.Code != contract.ExitTempFail || !strings.Contains(result.Message, "roll back volume") {
		t.Errorf("%+v", result)
	}
}

// Before the first volume is made the exit code says that nothing was made. Later it does not.
func TestRefusedCredentialsAreTriedAgainWhenSomethingWasMade(t *testing.T) {
	for from, code := range map[int]int{1: contract.ExitNoPerm, 2: contract.ExitNoPerm, 4: contract.ExitTempFail} {
		w := newWorld(t)
		asked := 0
		w.cinder.Gate = func(*http.Request) cindertest.Fate {
			if asked++; asked >= from {
				return cindertest.Refuse
			}
			return cindertest.Answer
		}
		result := w.provision(t)
		if result.Code != code || !strings.Contains(contract.ForClaim(result.Message), "an administrator must correct the login") {
			t.Errorf("from request %d: %+v", from, result)
		}
		if made := len(w.cinder.Volumes()) > 0; made && code == contract.ExitNoPerm {
			t.Errorf("from request %d: a volume is left, and the code says that there is none", from)
		}
	}
}

// The PV exists for another volume. This run's volume is removed, and the Secret is the other
// volume's again.
func TestFasterRunKeepsItsVolume(t *testing.T) {
	w := newWorld(t)
	var kept string
	w.kube.PrependReactor("create", "persistentvolumes", func(kubetesting.Action) (bool, runtime.Object, error) {
		if len(w.pvs(t)) == 0 {
			kept = w.cinder.Add("attaching", map[string]string{contract.AnnClaimUID: uid})
			w.addPV(uid, kept)
		}
		return false, nil, nil
	})
	if result := w.provision(t); result.Code != contract.ExitDone {
		t.Fatalf("%+v", result)
	}
	if all := w.cinder.Volumes(); len(all) != 1 || all[0].ID != kept {
		t.Errorf("left %v", all)
	}
	if got := string(w.secrets(t)[0].Data["node.session.auth.password"]); got != cindertest.Password(kept) {
		t.Errorf("the Secret holds %q", got)
	}
}

// A thief of the pod's token is faster than the run, and names the disk of a server. The run
// neither exports it nor writes its password.
func TestVolumeOfAForgedPVIsNotReached(t *testing.T) {
	for _, api := range []volume.Method{cinder.Attachments, cinder.Reserve} {
		w := newWorld(t)
		w.api = api
		disk := w.cinder.Add("in-use", map[string]string{"name": "disk of a server"})
		w.kube.PrependReactor("create", "persistentvolumes", func(kubetesting.Action) (bool, runtime.Object, error) {
			if len(w.pvs(t)) == 0 {
				w.addPV(uid, disk)
			}
			return false, nil, nil
		})
		if result := w.provision(t); result.Code != contract.ExitTempFail || !strings.Contains(result.Message, "belongs to no claim") {
			t.Errorf("%s: %+v", api, result)
		}
		for _, secret := range w.secrets(t) {
			if string(secret.Data["node.session.auth.password"]) == cindertest.Password(disk) {
				t.Errorf("%s: the Secret holds the password of the disk", api)
			}
		}
		if v := w.cinder.Volumes()[0]; v.ID != disk || v.Exported {
			t.Errorf("%s: the disk is %+v", api, v)
		}
	}
}

// A thief of a token of any provisioner has written the PV of a claim: it names a volume without
// marks, or the attachment of another claim's volume. Each refusal says what an administrator can
// do, and that works.
func TestForgedRecordReachesNothingOfOthers(t *testing.T) {
	w := newWorld(t)
	w.api = cinder.Attachments
	w.wantCode(t, w.provision(t), contract.ExitDone)
	object := w.pvs(t)[0]
	own := object.Annotations["flex-provisioner.io/cinder-attachment-id"]
	disk, other := w.cinder.Add("available", map[string]string{"name": "disk of a server"}), w.cinder.Add("available", map[string]string{contract.AnnClaimUID: otherUID})
	w.cinder.Attach(other, "attached")
	theirs := slices.DeleteFunc(w.cinder.Attachments(), func(id string) bool { return id == own })[0]
	refuse := func(key, value string, words ...string) {
		t.Helper()
		forged := object.DeepCopy()
		forged.Annotations["flex-provisioner.io/"+key] = value
		result := w.run(t, w.request(contract.Delete, nil), forged)
		for _, word := range words {
			if result.Code == contract.ExitDone || !strings.Contains(result.Message, word) {
				t.Errorf("%s=%s: %+v, want %q", key, value, result, word)
			}
		}
		if len(w.cinder.Volumes()) != 3 || len(w.cinder.Attachments()) != 2 {
			t.Fatalf("%s=%s: left %+v, attached %v", key, value, w.cinder.Volumes(), w.cinder.Attachments())
		}
	}
	refuse("cinder-volume-id", disk, "openstack volume set --property flex-provisioner.io/claim-uid="+uid+" "+disk, "policy of the PersistentVolume "+pvName+" to Retain")
	refuse("cinder-volume-id", "../volumes/"+disk, "is not an ID")
	w.also = map[string]string{"adopt": "shop/data: " + disk} // another claim is to adopt the disk, and the PV has that claim's name
	refuse("cinder-volume-id", disk, "belongs to no claim")
	refuse("cinder-attachment-id", theirs, theirs+" belongs to volume "+other)
	refuse("cinder-attachment-id", "../volumes/"+disk, "is not an ID")
	delete(object.Annotations, "flex-provisioner.io/cinder-attachment-id")
	victims := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: w.secrets(t)[0].Namespace, Name: contract.PVName(otherUID)}}
	if err := w.kube.Tracker().Add(victims); err != nil {
		t.Fatal(err)
	}
	object.Annotations[contract.AnnSecret] = victims.Namespace + "/" + victims.Name
	w.wantCode(t, w.run(t, w.request(contract.Delete, nil), &object), contract.ExitDone)
	if left := w.secrets(t); len(left) != 1 || left[0].Name != victims.Name {
		t.Errorf("the Secrets that are left: %+v", left)
	}
	if len(w.cinder.Volumes()) != 2 || !slices.Equal(w.cinder.Attachments(), []string{theirs}) {
		t.Errorf("left %+v, attached %v", w.cinder.Volumes(), w.cinder.Attachments())
	}
}

func TestUnknownVerbIsAWrongUse(t *testing.T) {
	w := newWorld(t)
	result := w.run(t, w.request("shrink", nil), skeleton())
	if result.Code != contract.ExitUsage || !strings.Contains(result.Message, `"shrink"`) {
		t.Errorf("%+v", result)
	}
}
