package run_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/cindertest"
)

// describes lets Cinder describe every connection by this body, as a backend would that the fake does not have.
func (w *world) describes(body string) {
	w.cinder.Instead = func(r *http.Request) *cindertest.Reply {
		if r.Body == nil {
			return nil
		}
		sent, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(sent))
		if err != nil || !bytes.Contains(sent, []byte("os-initialize_connection")) {
			return nil
		}
		return &cindertest.Reply{Status: http.StatusOK, Body: body}
	}
}

// sharedTarget is how an array describes a volume on its one target.
const sharedTarget = `{"connection_info": {"driver_volume_type": "iscsi", "data": {"target_portal": "192.0.2.1:3260",
	"target_iqn": "iqn.1992-08.com.netapp:sn.1234:vs.3", "target_lun": "7", "auth_method": "CHAP", "auth_username": "u", "auth_password": "hush",
	"target_portals": ["192.0.2.1:3260", "192.0.2.2:3260"], "target_luns": ["7", "7"],
	"target_iqns": ["iqn.1992-08.com.netapp:sn.1234:vs.3", "iqn.1992-08.com.netapp:sn.1234:vs.4"]}}}`

// What no PV can name ends with the exit code of a faulty class, the remedy on the claim, and nothing left.
func TestAVolumeThatNoPVCanNameIsRemovedAndTheClaimSaysWhatToConfigure(t *testing.T) {
	for name, tc := range map[string]struct{ body, words string }{
		"one target for all volumes": {sharedTarget, "set write-initiator to false in the class or its config"},
		"a LUN that is no number":    {strings.Replace(sharedTarget, `"target_lun": "7"`, `"target_lun": "seven"`, 1), "a LUN is no number"},
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

// With names of the nodes' own the same volume is provisioned, and the log warns of what the PV cannot use.
func TestTheLogWarnsOfWhatThePVCannotUse(t *testing.T) {
	w := newWorld(t)
	w.also = map[string]string{"write-initiator": "false"}
	w.describes(sharedTarget)
	w.wantCode(t, w.provision(t), contract.ExitDone)
	if got := w.pvs(t)[0].Spec.ISCSI; got.InitiatorName != nil || got.Lun != 7 || len(got.Portals) != 0 {
		t.Errorf("the PV has %+v", got)
	}
	for _, words := range []string{"not every path to the volume is used", "CHAP credentials belong to an initiator or a host"} {
		if !strings.Contains(w.printed.String(), words) {
			t.Errorf("no warning %q in %s", words, w.printed.String())
		}
	}
	if strings.Contains(w.printed.String(), "hush") {
		t.Error("the password is printed")
	}
}
