package run_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// The dispatcher then says ControllerResizeInfeasible, and the claim's user can ask for less.
func TestSizeThatTheTypeForbidsIsTheClaimsFault(t *testing.T) {
	const said = `greater than the maximum allowable size of`
	for _, api := range []volume.Method{cinder.Auto, cinder.Reserve} {
		w := newWorld(t)
		w.api = api
		w.provision(t)
		one(t, w)
		w.cinder.MaxSize = 6
		if r := w.expand(t); r.Code != contract.ExitBadRequest || !strings.Contains(r.Message, said) {
			t.Errorf("%s: expand to 7 GiB: %+v", api, r)
		}
		one(t, w)
		w = newWorld(t)
		w.api = api
		w.cinder.MaxSize = 2
		if r := w.provision(t); r.Code != contract.ExitBadRequest || !strings.Contains(r.Message, said) {
			t.Errorf("%s: provision of 3 GiB: %+v", api, r)
		}
		none(t, w)
	}
}

// With 73 or 65 the dispatcher takes the volume for one that has not grown, and a lower request for one
// that a quota may count. Cinder answers a limit of requests with the status of a used-up quota.
func TestALimitOfRequestsDoesNotSayThatNothingHasGrown(t *testing.T) {
	w := newWorld(t)
	w.provision(t)
	one(t, w)
	extended := false
	w.cinder.Instead = func(r *http.Request) *cindertest.Reply {
		if r.Method == http.MethodPost {
			extended = true
			return nil
		}
		if !extended {
			return nil
		}
		return &cindertest.Reply{Status: http.StatusRequestEntityTooLarge, Body: `{"overLimitFault": {"code": 413, "message": "This request was rate-limited."}}`}
	}
	if r := w.expand(t); r.Code != contract.ExitUnavailable || !extended {
		t.Errorf("expand to 7 GiB: %+v", r)
	}
}
