//go:build e2e

package e2e

import (
	"slices"
	"testing"
)

// Where Cinder exports through two portals, the PV names both, and what is written through the
// first is read through the second; each refuses a wrong password.
func TestVolumeIsReachedThroughBothPortals(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "portals")
	w.class(w.ns, parameter("type", "lvmmp"))
	w.config(ownNamespace, w.ns, cinderConfig(map[string]string{"multipath": "true"}))
	source := w.bound(w.claim(w.ns, "data")).Spec.ISCSI
	if source == nil || source.TargetPortal != "10.250.0.1:3260" || !slices.Equal(source.Portals, []string{"10.250.0.2:3260"}) {
		t.Fatalf("the PV's source is %+v", source)
	}
	user, password := w.chap(w.pv(w.claims[0]))
	said := w.checkStorage(source, user, password)
	contains(t, "what the initiator saw", said, "10.250.0.1:3260: "+source.IQN+" accepts "+user)
	for _, portal := range []string{"10.250.0.1:3260", "10.250.0.2:3260"} {
		for _, fact := range []string{"a new session reads the same pattern", "a wrong password is refused", "no password is refused"} {
			contains(t, "what the initiator saw", said, portal+": "+fact)
		}
	}
}
