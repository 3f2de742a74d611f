package run_test

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// inZones is a request of a class with the property availability, for a node in a zone, and with
// allowedTopologies.
func inZones(availability, selected string, allowed ...string) func(*contract.Request) {
	return func(r *contract.Request) {
		if availability != "" {
			r.Properties["availability"] = availability
		}
		if r.SelectedZone = selected; len(allowed) > 0 {
			r.AllowedTopologies = []map[string][]string{{corev1.LabelTopologyZone: allowed}}
		}
	}
}

// far makes the volume where only one backend is.
func far(r *contract.Request) { r.Properties["type"] = cindertest.TypeFar }

func both(edits ...func(*contract.Request)) func(*contract.Request) {
	return func(r *contract.Request) {
		for _, edit := range edits {
			edit(r)
		}
	}
}

// keptIn returns the zone to whose nodes the claim's PV is restricted, or "".
func (w *world) keptIn(t *testing.T) string {
	t.Helper()
	for _, made := range w.pvs(t) {
		if made.Name == pvName && made.Spec.NodeAffinity != nil {
			return made.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values[0]
		}
	}
	return ""
}

// Pods are kept in the zone where the volume is, if the class says that the zones of Cinder are those
// of the nodes.
func TestPodsAreKeptWhereTheVolumeIs(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*contract.Request)
		kept string
	}{
		"selected-node":                   {both(far, inZones("selected-node", "far")), "far"},
		"allowedTopologies":               {both(far, inZones("", "", "far")), "far"},
		"a zone by name":                  {both(far, inZones("far", "east")), ""},
		"a zone by name, of these nodes":  {both(far, inZones("far", "east", "east")), "east"},
		"no zone":                         {inZones("", "east"), ""},
		"zones ignored":                   {inZones("ignore", "east", "east"), ""},
		"snapshot, allowedTopologies":     {both(inZones("", "", "a", "b", "nova"), snapshotted), "nova"},
		"snapshot, the node of its zone":  {both(inZones("selected-node", "nova"), snapshotted), "nova"},
		"snapshot, zones ignored":         {both(inZones("ignore", "far", "far"), snapshotted), ""},
		"snapshot in the zone of a class": {both(inZones("nova", "far"), snapshotted), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.wantCode(t, w.run(t, w.request(contract.Provision, tc.edit), skeleton()), contract.ExitDone)
			if got := w.keptIn(t); got != tc.kept {
				t.Errorf("pods are kept in %q, want %q", got, tc.kept)
			}
		})
	}
}

func snapshotted(r *contract.Request) { r.Properties["snapshot"] = cindertest.Snapshot }

// A clone of a volume in a zone that is not Cinder's default one: no zone is asked for, which Cinder
// would refuse for most claims, since each claim has a zone of its own (allowedTopologies) or that
// of its node.
func TestPodsOfACloneAreKeptWhereItsSourceIs(t *testing.T) {
	clones := fromOriginal(map[string]string{"smartclone": "true"})
	for name, tc := range map[string]struct {
		edit func(*contract.Request)
		kept string
	}{
		"allowedTopologies":   {inZones("", "", "a", "b", "c", "nova"), "nova"},
		"the source's node":   {inZones("selected-node", "nova"), "nova"},
		"ignored":             {inZones("ignore", "far"), ""},
		"no zone":             {inZones("", "far"), ""},
		"its zone by name":    {inZones("nova", "far"), ""},
		"ignored, topologies": {inZones("ignore", "", "a", "b"), ""},
	} {
		for _, anywhere := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				w := newWorld(t)
				w.cinder.ClonesAnywhere = anywhere
				w.addSource(t, nil)
				w.wantCode(t, w.run(t, w.request(contract.Provision, both(clones, tc.edit)), skeleton()), contract.ExitDone)
				if got := w.keptIn(t); got != tc.kept {
					t.Errorf("pods are kept in %q, want %q", got, tc.kept)
				}
			})
		}
	}
}

// What the claim's user chose is the user's to change; what Cinder and the class say is the
// administrator's. Nothing is left.
func TestVolumeInAnotherZoneIsRefused(t *testing.T) {
	clone := fromOriginal(map[string]string{"smartclone": "true"})
	for name, tc := range map[string]struct {
		edit func(*contract.Request)
		code int
		said string
	}{
		"a clone for a node elsewhere":     {both(clone, inZones("selected-node", "far")), contract.ExitBadRequest, `the source is in zone "nova"`},
		"a clone in no allowed zone":       {both(clone, inZones("", "", "a", "b")), contract.ExitBadRequest, `needs a volume in zone "a" or "b"`},
		"a clone, the class elsewhere":     {both(clone, inZones("far", "")), contract.ExitBadRequest, `the source is in zone "nova"`},
		"a snapshot for a node elsewhere":  {both(snapshotted, inZones("selected-node", "far")), contract.ExitConfig, `it is in zone "nova", and must be in zone "far"`},
		"a snapshot, the class elsewhere":  {both(snapshotted, inZones("far", "")), contract.ExitConfig, `it is in zone "nova", and must be in zone "far"`},
		"a zone that Cinder does not know": {inZones("selected-node", "east"), contract.ExitConfig, `it is in zone "nova", and must be in zone "east"`},
		"the class's zone":                 {inZones("east", ""), contract.ExitConfig, `it is in zone "nova", and must be in zone "east"`},
		"another allowed zone":             {inZones("", "", "east", "south"), contract.ExitConfig, `it is in zone "nova", and must be in zone "`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.cinder.ZoneFallback = true
			w.addSource(t, nil)
			result := w.run(t, w.request(contract.Provision, tc.edit), skeleton())
			if result.Code != tc.code || !strings.Contains(contract.ForClaim(result.Message), tc.said) {
				t.Errorf("exit %d, %s", result.Code, result.Message)
			}
			if len(w.cinder.Volumes()) != 1 || len(w.pvs(t)) != 1 { // those of the source
				t.Errorf("left %v, %v", w.cinder.Volumes(), w.pvs(t))
			}
		})
	}
}

// A class that ignores zones uses the volume, and the log says where it is.
func TestZoneThatIsIgnoredIsLogged(t *testing.T) {
	w := newWorld(t)
	w.wantCode(t, w.run(t, w.request(contract.Provision, inZones("ignore", "east")), skeleton()), contract.ExitDone)
	if log := w.printed.String(); !strings.Contains(log, "Volume is in another zone than the nodes") || !strings.Contains(log, "zone=nova") {
		t.Error(log)
	}
}

// A run that dies after any request leaves a volume to the next one, which comes to the same PV, or
// refuses the volume in the same way.
func TestZoneIsTheSameAfterAnyLostRun(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*contract.Request)
		kept string
		code int
	}{
		"made where it was asked for": {both(far, inZones("selected-node", "far")), "far", contract.ExitDone},
		"a clone":                     {both(fromOriginal(map[string]string{"smartclone": "true"}), inZones("", "", "a", "b", "c", "nova")), "nova", contract.ExitDone},
		"made elsewhere":              {inZones("selected-node", "east"), "", contract.ExitConfig},
	} {
		t.Run(name, func(t *testing.T) {
			for lost := 1; ; lost++ {
				w := newWorld(t)
				w.cinder.ZoneFallback = true
				w.addSource(t, nil)
				w.guard(func(n int) cindertest.Fate {
					return map[bool]cindertest.Fate{true: cindertest.DropAnswer, false: cindertest.Answer}[n >= lost]
				})
				w.run(t, w.request(contract.Provision, tc.edit), skeleton())
				requests := w.guard(nil)
				result := w.run(t, w.request(contract.Provision, tc.edit), skeleton())
				if result.Code != tc.code || w.keptIn(t) != tc.kept {
					t.Errorf("after request %d: exit %d, pods are kept in %q; %s", lost, result.Code, w.keptIn(t), result.Message)
				}
				if requests < lost {
					break
				}
			}
		})
	}
}

// What the answer to the create says is refused before the export.
func TestEncryptedVolumeIsNeverExported(t *testing.T) {
	for _, also := range []map[string]string{{}, {"connection": "iscsi", "flex-driver": "v/d"}} {
		w := newWorld(t)
		w.also = map[string]string{"type": cindertest.TypeEncrypted}
		maps.Copy(w.also, also)
		result := w.provision(t)
		if result.Code != contract.ExitConfig || !strings.Contains(contract.ForClaim(result.Message), "choose a type without encryption") {
			t.Errorf("exit %d, %s", result.Code, result.Message)
		}
		if n := w.sent.count("/action"); n > 0 {
			t.Errorf("%d requests act on the volume", n)
		}
	}
}
