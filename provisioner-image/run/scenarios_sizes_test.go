package run_test

import (
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
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
