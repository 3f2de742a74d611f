package run_test

import (
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// Cinder 17 wants the project in its URLs, and makes attachments only for servers, both of which a
// run finds out by itself. It may end at any of these requests.
func TestRunKilledOnCinder17IsCompletedByTheNext(t *testing.T) {
	victoria := func(w *world) { w.cinder.SetRelease(17); w.api = cinder.Auto }
	for name, fate := range map[string]cindertest.Fate{"lost": cindertest.DropRequest, "served": cindertest.DropAnswer} {
		t.Run("provision, "+name, func(t *testing.T) {
			killEverywhere(t, fate, victoria, (*world).provision, func(t *testing.T, w *world) {
				t.Helper()
				one(t, w)
				if api := w.pvs(t)[0].Annotations["flex-provisioner.io/cinder-attach-api"]; api != string(cinder.Reserve) {
					t.Errorf("the PV says %q", api)
				}
				if v := w.cinder.Volumes()[0]; v.Status != "in-use" || !v.Exported {
					t.Errorf("left %+v", v)
				}
			})
		})
		t.Run("provision then undo, "+name, func(t *testing.T) { killThenUndo(t, fate, victoria) })
		t.Run("delete, "+name, func(t *testing.T) {
			killEverywhere(t, fate, func(w *world) { victoria(w); w.provision(t) }, (*world).remove, none)
		})
	}
}
