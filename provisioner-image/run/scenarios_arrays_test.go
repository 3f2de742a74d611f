package run_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// body returns the body of a request, which can be read again.
func body(r *http.Request) []byte {
	if r.Body == nil {
		return nil
	}
	sent, err := io.ReadAll(r.Body)
	if err != nil {
		return nil
	}
	r.Body = io.NopCloser(bytes.NewReader(sent))
	return sent
}

// describes lets Cinder describe every connection by this answer, as a backend would that the fake
// does not have.
func (w *world) describes(answer string) {
	w.cinder.Instead = func(r *http.Request) *cindertest.Reply {
		if !bytes.Contains(body(r), []byte("os-initialize_connection")) {
			return nil
		}
		return &cindertest.Reply{Status: http.StatusOK, Body: answer}
	}
}

// sharedTarget is how an array describes a volume on its one target.
const sharedTarget = `{"connection_info": {"driver_volume_type": "iscsi", "data": {"target_portal": "192.0.2.1:3260",
	"target_iqn": "iqn.1992-08.com.netapp:sn.1234:vs.3", "target_lun": "7", "auth_method": "CHAP", "auth_username": "u", "auth_password": "hush",
	"target_portals": ["192.0.2.1:3260", "192.0.2.2:3260"], "target_luns": ["7", "7"],
	"target_iqns": ["iqn.1992-08.com.netapp:sn.1234:vs.3", "iqn.1992-08.com.netapp:sn.1234:vs.4"]}}}`

// What no PV can name ends with the exit code of a faulty class, the remedy on the claim, and
// nothing left.
func TestAVolumeThatNoPVCanNameIsRemovedAndTheClaimSaysWhatToConfigure(t *testing.T) {
	for name, tc := range map[string]struct{ body, words string }{
		"one target for all volumes": {sharedTarget, "set write-initiator to false in the class or its config"},
		"a LUN that is no number":    {strings.Replace(sharedTarget, `"target_lun": "7"`, `"target_lun": "seven"`, 1), "a LUN is not a number"},
		"a LUN over 255":             {strings.Replace(sharedTarget, `"target_lun": "7"`, `"target_lun": 256`, 1), "another initiator and host"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.describes(tc.body)
			result := w.provision(t)
			w.wantCode(t, result, contract.ExitConfig)
			if claim := contract.ForClaim(result.Message); !strings.Contains(claim, tc.words) {
				t.Errorf("the claim says %q", claim)
			}
			none(t, w)
		})
	}
}

// With names of the nodes' own the same volume is provisioned, and the log warns of what the PV
// cannot use.
func TestTheLogWarnsOfWhatThePVCannotUse(t *testing.T) {
	w := newWorld(t)
	w.also = map[string]string{"write-initiator": "false"}
	w.describes(sharedTarget)
	w.wantCode(t, w.provision(t), contract.ExitDone)
	if got := w.pvs(t)[0].Spec.ISCSI; got.InitiatorName != nil || got.Lun != 7 || len(got.Portals) != 0 {
		t.Errorf("the PV has %+v", got)
	}
	for _, words := range []string{"some paths to the volume are not used", "CHAP credentials belong to an initiator or a host"} {
		if !strings.Contains(w.printed.String(), words) {
			t.Errorf("no warning %q in %s", words, w.printed.String())
		}
	}
	if strings.Contains(w.printed.String(), "hush") {
		t.Error("the password is printed")
	}
}

// Every request that names the nodes carries the further keys, by either way of exporting a volume
// and also when the export is removed.
func TestCinderIsSentTheFurtherKeysOfTheConnector(t *testing.T) {
	for api, want := range map[volume.Method]int{cinder.Attachments: 1, cinder.Reserve: 2} {
		t.Run(string(api), func(t *testing.T) {
			w := newWorld(t)
			w.api, w.also = api, map[string]string{"connector": `{"uuid": "u-1"}`}
			sent := 0
			w.cinder.Instead = func(r *http.Request) *cindertest.Reply {
				if b := body(r); bytes.Contains(b, []byte(`"connector"`)) {
					sent++
					if !bytes.Contains(b, []byte(`"uuid":"u-1"`)) || !bytes.Contains(b, []byte(`"host":"flex-provisioner"`)) {
						t.Errorf("sent %s", b)
					}
				}
				return nil
			}
			w.wantCode(t, w.provision(t), contract.ExitDone)
			w.wantCode(t, w.remove(t), contract.ExitDone)
			if sent < want {
				t.Errorf("%d requests named the nodes", sent)
			}
		})
	}
}

// An array may take away what a request does not name, and cut off nodes that joined later with all of
// their volumes. So a Fibre Channel volume in use is not exported again when it grows. Where it has to
// be, since an older image only reserved it, the request names the recorded and the configured ports.
func TestGrowingByReserveCutsNoPortOfAnyNode(t *testing.T) {
	for name, tc := range map[string]struct {
		volumeType string
		older      bool
		sent       string
	}{
		"in use":                           {cindertest.TypeFibre, false, ""},
		"only reserved, by an older image": {cindertest.TypeFibre, true, `"wwpns":["5001438018600001","5001438018600002","5001438018600003"],"wwnns":["5001438018600011","5001438018600013"]`},
		"in use, but not by Fibre Channel": {cindertest.TypePlain, false, `"wwpns":["5001438018600001","5001438018600002","5001438018600003"]`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.api = cinder.Reserve
			w.also = map[string]string{"type": tc.volumeType, "wwpns": "5001438018600001, 5001438018600002", "wwnns": "5001438018600011", "shared-lun": "true"}
			w.wantCode(t, w.provision(t), contract.ExitDone)
			if tc.older {
				w.cinder.LeaveReserved(w.own(t).ID)
			}
			w.also["wwpns"], w.also["wwnns"] = "5001438018600002, 5001438018600003", "5001438018600012, 5001438018600013"
			var sent string
			w.cinder.Instead = func(r *http.Request) *cindertest.Reply {
				if text := body(r); bytes.Contains(text, []byte("os-initialize_connection")) {
					sent = string(text)
				}
				return nil
			}
			made := w.pvs(t)[0]
			w.wantCode(t, w.run(t, w.request(contract.Expand, func(r *contract.Request) { r.Size = 9 << 30 }), &made), contract.ExitDone)
			if (sent == "") != (tc.sent == "") || !strings.Contains(sent, tc.sent) {
				t.Errorf("exported to %q, want %q", sent, tc.sent)
			}
		})
	}
}

// With many ports of one LUN, which no connection shows, a class says so, or nothing is made.
func TestNothingIsMadeForPortsWhoseLUNIsNotKnown(t *testing.T) {
	w := newWorld(t)
	w.also = map[string]string{"type": cindertest.TypeFibre, "wwpns": "50014380186b3f64, 50014380186b3f66", "connection": "fibre_channel"}
	w.cinder.Instead = func(r *http.Request) *cindertest.Reply {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/volumes") {
			t.Error("a volume is created")
		}
		return nil
	}
	result := w.provision(t)
	w.wantCode(t, result, contract.ExitConfig)
	if claim := contract.ForClaim(result.Message); !strings.Contains(claim, "set shared-lun to true") {
		t.Errorf("the claim says %q", claim)
	}
}

// A raw device that many nodes write to is a volume of a multiattach type, whatever the class says.
func TestManyNodesWriteOnlyToAVolumeOfAMultiattachType(t *testing.T) {
	for kind, code := range map[string]int{cindertest.TypeMultiattach: contract.ExitDone, cindertest.TypeFibre: contract.ExitConfig} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			w.also = map[string]string{"type": kind, "wwpns": "50014380186b3f64", "connection": "fibre_channel", "multiattach": "true"}
			object := skeleton(corev1.ReadWriteMany)
			object.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
			w.wantCode(t, w.run(t, w.request(contract.Provision, nil), object), code)
			if code != contract.ExitDone {
				none(t, w)
			}
		})
	}
}

// namesType lets Cinder know a type by an ID, too.
func (w *world) namesType(id, name string) {
	w.cinder.Instead = func(r *http.Request) *cindertest.Reply {
		switch {
		case strings.HasSuffix(r.URL.Path, "/types/"+id):
			return &cindertest.Reply{Status: http.StatusOK, Body: `{"volume_type": {"id": "` + id + `", "name": "` + name + `"}}`}
		case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/volumes"):
			named := bytes.ReplaceAll(body(r), []byte(id), []byte(name))
			r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(named)), int64(len(named))
		}
		return nil
	}
}

// A class may give its volume type by the type's ID. A clone and an adopted volume are compared by
// the name that Cinder has for it.
func TestATypeGivenByItsIDIsTheTypeThatCinderNames(t *testing.T) {
	const typeID = "1a2b3c4d-0000-4000-8000-0123456789ab"
	for named, code := range map[string]int{cindertest.TypePlain: contract.ExitDone, cindertest.TypeRBD: contract.ExitBadRequest} {
		t.Run("clone, type "+named, func(t *testing.T) {
			w := newWorld(t)
			w.addSource(t, nil)
			w.namesType(typeID, named)
			clone := fromOriginal(map[string]string{"smartclone": "", "type": typeID})
			w.wantCode(t, w.run(t, w.request(contract.Provision, clone), skeleton()), code)
		})
		t.Run("adoption, type "+named, func(t *testing.T) {
			w := newWorld(t)
			w.namesType(typeID, named)
			adopted := w.cinder.Add("available", nil)
			w.cinder.Resize(adopted, 3)
			w.also = map[string]string{"type": typeID, "adopt": "shop/data: " + adopted}
			w.wantCode(t, w.provision(t), code)
		})
	}
}
