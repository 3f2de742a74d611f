package input_test

import "testing"

// With one port of many some arrays would export to the first one only, unless the class wants that.
func TestManyPortsAreExportedToUnlessTheClassSaysOtherwise(t *testing.T) {
	for name, tc := range map[string]struct {
		properties map[string]string
		multipath  bool
	}{
		"no port":                {nil, false},
		"one port":               {map[string]string{"wwpns": "50014380186b3f64"}, false},
		"two ports":              {map[string]string{"wwpns": "50014380186b3f64, 50014380186b3f66"}, true},
		"two ports, one is used": {map[string]string{"wwpns": "50014380186b3f64, 50014380186b3f66", "multipath": "false"}, false},
		"two portals":            {map[string]string{"multipath": "true"}, true},
	} {
		if task, err := with(t, tc.properties, nil); err != nil || task.Volume.Access.Client.Multipath != tc.multipath {
			t.Errorf("%s: %t, %v", name, task.Volume.Access.Client.Multipath, err)
		}
	}
}
