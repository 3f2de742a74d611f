package mapper_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/mapper"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// described maps a connection as a driver describes it, for nodes with names of their own.
func described(t *testing.T, kind, details string, edit func(*mapper.Want)) (mapper.Mapping, error) {
	t.Helper()
	w := want()
	w.Initiator = ""
	if edit != nil {
		edit(&w)
	}
	return mapper.Map(volume.NewConnection(kind, json.RawMessage(details)), w)
}

// ports lets a volume be exported to so many ports of the nodes. What the config says of their LUN
// is true, false or nothing.
func ports(n int, shared string) func(*mapper.Want) {
	return func(w *mapper.Want) {
		w.Fabric.Ports = n
		if shared != "" {
			w.Fabric.SharedLUN = new(shared == "true")
		}
	}
}

// Either form of the ports goes with either form of the LUNs, as in os-brick's
// _add_targets_to_connection_properties.
func TestPortsAndLUNsArePairedInEveryForm(t *testing.T) {
	const two = `["20210002AC00383D", "20220002AC00383D"]`
	for name, tc := range map[string]struct {
		details string
		ports   int
		lun     int32
		warning string
		refused string
	}{
		"one port, one LUN":                  {`{"target_wwn": "20210002AC00383D", "target_lun": 5}`, 1, 5, "", ""},
		"ports, one LUN":                     {`{"target_wwn": ` + two + `, "target_lun": 5}`, 2, 5, "", ""},
		"ports, a list of one LUN":           {`{"target_wwn": ` + two + `, "target_luns": [5]}`, 2, 5, "", ""},
		"ports, LUNs":                        {`{"target_wwn": ` + two + `, "target_luns": [5, 5]}`, 2, 5, "", ""},
		"ports of the second form":           {`{"target_wwns": ` + two + `, "target_lun": 5}`, 2, 5, "", ""},
		"both forms, the second counts":      {`{"target_wwn": "50014380186b3f64", "target_wwns": ` + two + `, "target_lun": 1, "target_luns": [5, 5]}`, 2, 5, "", ""},
		"another LUN by the second port":     {`{"target_wwn": ` + two + `, "target_luns": [5, 7]}`, 1, 5, "by another LUN than 5", ""},
		"fewer LUNs than ports":              {`{"target_wwn": ["20210002AC00383D", "20220002AC00383D", "20230002AC00383D"], "target_luns": [5, 5]}`, 0, 0, "", "3 ports and 2 LUNs"},
		"one port, LUNs":                     {`{"target_wwn": "20210002AC00383D", "target_luns": [5, 5]}`, 0, 0, "", "1 ports and 2 LUNs"},
		"no LUN, which os-brick takes for 0": {`{"target_wwn": ` + two + `}`, 0, 0, "", "no port or no LUN"},
		"a port without a LUN":               {`{"target_wwn": ` + two + `, "target_luns": [null, 5]}`, 1, 5, "", ""},
		"a port that is named twice":         {`{"target_wwn": ["20210002AC00383D", "20:21:00:02:ac:00:38:3d"], "target_lun": 5}`, 1, 5, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := described(t, "fibre_channel", tc.details, nil)
			if tc.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tc.refused) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if fc := m.Source.FC; len(fc.TargetWWNs) != tc.ports || *fc.Lun != tc.lun {
				t.Errorf("ports %v, LUN %d", fc.TargetWWNs, *fc.Lun)
			}
			if got := strings.Join(m.Warnings, "; "); (got == "") != (tc.warning == "") || !strings.Contains(got, tc.warning) {
				t.Errorf("warned %q", got)
			}
		})
	}
}

// A node keeps the device of a deleted volume under its port and LUN, and the kubelet takes it for
// the volume that has the LUN now. By the name of the disk it finds no other one.
func TestADiskThatIdentifiesItselfIsFoundByItsName(t *testing.T) {
	const udevs = "3624a93709714b5cb91634c470002b2c8"
	for name, wwn := range map[string]string{
		"as Pure sends it":  udevs,
		"in capitals":       strings.ToUpper(udevs),
		"with its type NAA": "naa.624a93709714b5cb91634c470002b2c8",
	} {
		t.Run(name, func(t *testing.T) {
			m, err := described(t, "fibre_channel", `{"target_lun": 1, "target_luns": [1, 1], "target_wwn": ["5001500150015081", "5001500150015082"],
				"target_wwns": ["5001500150015081", "5001500150015082"], "wwn": "`+wwn+`"}`, ports(4, "false"))
			if err != nil {
				t.Fatal(err)
			}
			if fc := m.Source.FC; !slices.Equal(fc.WWIDs, []string{udevs}) || fc.TargetWWNs != nil || fc.Lun != nil || m.Warnings != nil {
				t.Errorf("%+v, %v", fc, m.Warnings)
			}
		})
	}
	m, err := described(t, "fibre_channel", `{"wwn": "eui.0123456789ABCDEF"}`, nil)
	if err != nil || !slices.Equal(m.Source.FC.WWIDs, []string{"20123456789abcdef"}) {
		t.Errorf("an EUI: %+v, %v", m.Source.FC, err)
	}
}

// A PV has one LUN for all nodes. An array that numbers LUNs by port would show other nodes another
// claim's volume, so the administrator has to say that it does not, before a volume is made.
func TestManyPortsNeedALUNThatTheyShare(t *testing.T) {
	const ordinary, infinidat = `{"target_wwn": ["500A098280FEEBA5"], "target_lun": 7}`, `{"target_wwn": ["5742B0F000753211"], "target_lun": 7}`
	for name, tc := range map[string]struct {
		details string
		ports   int
		shared  string
		early   bool
		refused string
	}{
		"one port":                       {ordinary, 1, "", false, ""},
		"nothing is known of the ports":  {ordinary, 2, "", true, "set shared-lun to true in the class or its config if"},
		"the ports share the LUN":        {ordinary, 2, "true", false, ""},
		"the ports do not share the LUN": {ordinary, 2, "false", false, "LUN 7 may be another claim's volume"},
		"an array that numbers by port":  {infinidat, 2, "true", false, "Infinidat"},
		"one port of such an array":      {infinidat, 1, "", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := want()
			kind("fibre_channel")(&w)
			ports(tc.ports, tc.shared)(&w)
			if err := mapper.Check(w); (err != nil) != tc.early {
				t.Errorf("before the volume exists: %v", err)
			}
			_, err := described(t, "fibre_channel", tc.details, ports(tc.ports, tc.shared))
			if (err != nil) != (tc.refused != "") || err != nil && !strings.Contains(err.Error(), tc.refused) {
				t.Errorf("got %v, want %q", err, tc.refused)
			}
		})
	}
	w := want()
	ports(2, "")(&w)
	if _, err := mapper.Map(connection(t, nil), w); err != nil {
		t.Errorf("an iSCSI disk: %v", err)
	}
}
