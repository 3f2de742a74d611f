package mapper_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/mapper"
)

// Portals, targets and LUNs are paired as in os-brick's _get_all_targets, and what is left over is
// reported.
func TestPortalsArePairedAndNoneIsLeftOutSilently(t *testing.T) {
	for name, tc := range map[string]struct {
		details string
		portals []string
		lun     int32
		warning string
	}{
		"lists": {
			`{"target_portals": ["192.0.2.1:3260", "192.0.2.2:3260"], "target_iqns": ["` + iqn + `", "` + iqn + `"], "target_luns": [7, 7]}`,
			[]string{"192.0.2.1:3260", "192.0.2.2:3260"},
			7, "",
		},
		"lists without LUNs share the one": {
			`{"target_portal": "192.0.2.1:3260", "target_iqn": "` + iqn + `", "target_lun": 7,
			  "target_portals": ["192.0.2.1:3260", "192.0.2.2:3260"], "target_iqns": ["` + iqn + `", "` + iqn + `"]}`,
			[]string{"192.0.2.1:3260", "192.0.2.2:3260"},
			7, "",
		},
		"more portals than LUNs": {
			`{"target_portals": ["192.0.2.1:3260", "192.0.2.2:3260"], "target_iqns": ["` + iqn + `", "` + iqn + `"], "target_luns": [7]}`,
			[]string{"192.0.2.1:3260"},
			7, "2 portals, 2 targets and 1 LUNs, which cannot all be paired, so some portals such as 192.0.2.2:3260 are not used",
		},
		"portals without targets": {
			`{"target_portal": "192.0.2.1:3260", "target_iqn": "` + iqn + `", "target_lun": 7, "target_portals": ["192.0.2.1:3260", "192.0.2.2:3260"]}`,
			[]string{"192.0.2.1:3260"},
			7, "2 portals, 0 targets and 0 LUNs",
		},
		"a portal alone, as toyou/tyds sends it": {
			`{"target_portal": "192.0.2.1:3260", "target_lun": 7, "target_portals": ["192.0.2.1:3260"], "target_iqns": ["` + iqn + `"], "target_luns": [7]}`,
			[]string{"192.0.2.1:3260"},
			7, "",
		},
		"one portal by its DNS name": {
			`{"target_portals": ["storage.example:3260", "192.0.2.2:3260"], "target_iqns": ["` + iqn + `", "` + iqn + `"], "target_luns": [7, 7]}`,
			[]string{"192.0.2.2:3260"},
			7, "a DNS name such as storage.example:3260, so such portals are not used",
		},
		"no LUN, on a target of this volume": {`{"target_portal": "192.0.2.1:3260", "target_iqn": "` + iqn + `"}`, []string{"192.0.2.1:3260"}, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := described(t, "iscsi", tc.details, nil)
			if err != nil {
				t.Fatal(err)
			}
			s := m.Source.ISCSI
			if got := append([]string{s.TargetPortal}, s.Portals...); !slices.Equal(got, tc.portals) || s.Lun != tc.lun {
				t.Errorf("portals %v, LUN %d", got, s.Lun)
			}
			if got := strings.Join(m.Warnings, "; "); (got == "") != (tc.warning == "") || !strings.Contains(got, tc.warning) {
				t.Errorf("warned %q", got)
			}
		})
	}
}

// Nodes that do not reach every portal would wait for each of them at every mount.
func TestOnlyPortalsThatTheClassAllowsAreUsed(t *testing.T) {
	const details = `{"target_portal": "10.0.0.1:3260", "target_iqn": "` + iqn + `", "target_lun": 1,
		"target_portals": ["10.0.0.1:3260", "192.0.2.1:3260", "[2001:db8::1]:3260"],
		"target_iqns": ["` + iqn + `", "` + iqn + `", "` + iqn + `"], "target_luns": [1, 1, 1]}`
	for allowed, want := range map[string]string{
		"":                             "10.0.0.1:3260 192.0.2.1:3260 [2001:db8::1]:3260",
		"192.0.2.0/24":                 "192.0.2.1:3260",
		"10.0.0.1/32, 2001:db8::/32":   "10.0.0.1:3260 [2001:db8::1]:3260",
		"198.51.100.0/24, 10.0.0.2/32": "refused: according to the property portals (198.51.100.0/24, 10.0.0.2)",
	} {
		t.Run(allowed, func(t *testing.T) {
			m, err := described(t, "iscsi", details, func(w *mapper.Want) {
				for network := range strings.SplitSeq(allowed, ", ") {
					if network != "" {
						w.Portals = append(w.Portals, netip.MustParsePrefix(network))
					}
				}
			})
			if reason, refused := strings.CutPrefix(want, "refused: "); refused {
				if err == nil || !strings.Contains(err.Error(), reason) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(append([]string{m.Source.ISCSI.TargetPortal}, m.Source.ISCSI.Portals...), " "); got != want || m.Warnings != nil {
				t.Errorf("portals %s, warnings %v", got, m.Warnings)
			}
		})
	}
}
