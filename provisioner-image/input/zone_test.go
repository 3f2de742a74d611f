package input_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// topologies are the allowedTopologies of a class, each with zones.
func topologies(alternatives ...[]string) []map[string][]string {
	var all []map[string][]string
	for _, zones := range alternatives {
		all = append(all, map[string][]string{corev1.LabelTopologyZone: zones, corev1.LabelTopologyRegion: {"r"}})
	}
	return all
}

// A volume is made in a zone that the class's allowedTopologies name, and pods use it there: the
// selected node's zone, or without a node one that stays the same for the claim. A zone that the
// class names as a parameter comes first.
func TestAllowedTopologiesReachTheZone(t *testing.T) {
	tests := map[string]struct {
		availability, selected string
		allowed                []map[string][]string
		zone                   string
		kept                   bool
	}{
		"one zone":                           {"", "", topologies([]string{"east"}), "east", true},
		"one of several":                     {"", "", topologies([]string{"c", "b"}, []string{"a"}), "b", true},
		"the selected node's":                {"", "c", topologies([]string{"c", "b"}, []string{"a"}), "c", true},
		"a node that is not allowed":         {"", "z", topologies([]string{"c", "b"}, []string{"a"}), "b", true},
		"selected-node, Immediate":           {"selected-node", "", topologies([]string{"east"}), "east", true},
		"the class's own":                    {"nova", "", topologies([]string{"east"}), "nova", false},
		"an alternative without a zone":      {"", "", append(topologies([]string{"east"}), map[string][]string{corev1.LabelTopologyRegion: {"r"}}), "", false},
		"none":                               {"", "east", nil, "", false},
		"selected-node without restrictions": {"selected-node", "east", nil, "east", true},
		"ignored":                            {"ignore", "east", topologies([]string{"east"}), "", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			task, err := with(t, map[string]string{"availability": tc.availability}, func(r *contract.Requests, _ fstest.MapFS) {
				r.Items[0].SelectedZone, r.Items[0].AllowedTopologies = tc.selected, tc.allowed
			})
			if err != nil || task.Volume.Zone != tc.zone || task.InZone != tc.kept {
				t.Fatalf("the zone is %q, kept there: %t, %v", task.Volume.Zone, task.InZone, err)
			}
			if named := tc.availability == "nova"; named != slices.Equal(task.NodeZones, []string{"east"}) || !named && task.NodeZones != nil {
				t.Errorf("nodes of the zones %q can use it", task.NodeZones)
			}
			if tc.zone != "" && !slices.Equal(task.Volume.Zones, []string{tc.zone}) {
				t.Errorf("it may be in %q", task.Volume.Zones)
			}
		})
	}
}

// The storage makes a clone where its source is, and an adopted volume is somewhere already. Both
// are used in every zone that the class and the node allow.
func TestNoZoneIsAskedForAVolumeWithContent(t *testing.T) {
	for name, edit := range map[string]func(*contract.Request){
		"clone": func(r *contract.Request) {
			r.Properties["smartclone"] = "true"
			r.Source = &contract.Source{Kind: contract.SourceClaim, Namespace: "shop", Name: "original", UID: "1", PVName: "pvc-1"}
		},
		"snapshot": func(r *contract.Request) { r.Properties["snapshot"] = "s-1" },
		"adopted":  func(r *contract.Request) { r.Properties["adopt"] = "shop/data: v-1" },
	} {
		for _, tc := range []struct {
			availability, selected string
			zones                  []string
			kept                   bool
		}{
			{"", "", []string{"a", "b"}, true},
			{"", "b", []string{"b"}, true},
			{"selected-node", "b", []string{"b"}, true},
			{"nova", "b", []string{"nova"}, false},
		} {
			task, err := with(t, map[string]string{"availability": tc.availability}, func(r *contract.Requests, _ fstest.MapFS) {
				edit(&r.Items[0])
				r.Items[0].SelectedZone, r.Items[0].AllowedTopologies = tc.selected, topologies([]string{"b", "a"})
			})
			if v := task.Volume; err != nil || v.Zone != "" || !slices.Equal(v.Zones, tc.zones) || task.InZone != tc.kept {
				t.Errorf("%s, %+v: asked for %q, may be in %q, kept there: %t, %v", name, tc, v.Zone, v.Zones, task.InZone, err)
			}
		}
	}
}

// Claims of a class are spread over the zones that it allows.
func TestClaimsAreSpreadOverTheAllowedZones(t *testing.T) {
	made := map[string]int{}
	for i := range 60 {
		task, err := with(t, map[string]string{"availability": ""}, func(r *contract.Requests, _ fstest.MapFS) {
			r.Items[0].UID = fmt.Sprintf("uid-%d", i)
			r.Items[0].AllowedTopologies = topologies([]string{"a", "b", "c"})
		})
		if err != nil {
			t.Fatal(err)
		}
		made[task.Volume.Zone]++
	}
	for _, zone := range []string{"a", "b", "c"} {
		if made[zone] < 5 {
			t.Errorf("made in zones: %v", made)
		}
	}
}
