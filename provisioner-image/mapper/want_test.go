package mapper_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/mapper"
)

const (
	rwo  = corev1.ReadWriteOnce
	rox  = corev1.ReadOnlyMany
	rwx  = corev1.ReadWriteMany
	rwop = corev1.ReadWriteOncePod
)

// Access modes that a kind of connection does not support are refused with a reason.
func TestCheckRefusesAccessModesThatTheKindCannotKeep(t *testing.T) {
	filled := func(w *mapper.Want) { w.Filled = true }
	block := func(w *mapper.Want) { w.VolumeMode = corev1.PersistentVolumeBlock }
	ownNames := func(w *mapper.Want) { w.Initiator = ""; w.Filled = true }
	tests := map[string]struct {
		kind   string
		modes  []corev1.PersistentVolumeAccessMode
		edit   func(*mapper.Want)
		reason string
	}{
		"one node":                         {"iscsi", all(rwo), nil, ""},
		"one pod":                          {"iscsi", all(rwop), nil, ""},
		"one node or one pod":              {"nvmeof", all(rwo, rwop), nil, ""},
		"iscsi, many write":                {"iscsi", all(rwx), block, "ReadWriteMany is not supported on an iSCSI disk"},
		"iscsi, many read by one name":     {"iscsi", all(rox), filled, "that all nodes reach by one initiator name"},
		"iscsi, many read by their names":  {"iscsi", all(rox), ownNames, ""},
		"fc, many read":                    {"fibre_channel", all(rox), filled, ""},
		"fc, many read what nobody wrote":  {"fibre_channel", all(rox), nil, "on a new, empty volume"},
		"fc, readers beside a writer":      {"fibre_channel", all(rwo, rox), filled, "together with a mode that writes"},
		"iscsi, many read a raw device":    {"iscsi", all(rox), func(w *mapper.Want) { ownNames(w); block(w) }, "with volumeMode Block on an iSCSI disk"},
		"fc, many read a raw device":       {"fibre_channel", all(rox), func(w *mapper.Want) { filled(w); block(w) }, "pods of all nodes could write to"},
		"rbd, many read a raw device":      {"rbd", all(rox), func(w *mapper.Want) { filled(w); block(w) }, ""},
		"fc, many write":                   {"fibre_channel", all(rwx), block, "on a Fibre Channel disk"},
		"fc, many write to a file system":  {"fibre_channel", all(rwx), func(w *mapper.Want) { w.Multiattach = true }, "with a file system on a Fibre Channel disk"},
		"fc, many write, multiattach":      {"fibre_channel", all(rwx), func(w *mapper.Want) { block(w); w.Multiattach = true }, ""},
		"iscsi, many write by their names": {"iscsi", all(rwx), func(w *mapper.Want) { block(w); w.Initiator, w.Multiattach = "", true }, ""},
		"iscsi, many write by one name":    {"iscsi", all(rwx), func(w *mapper.Want) { block(w); w.Multiattach = true }, "by one initiator name"},
		"rbd, many write to a device":      {"rbd", all(rwx), block, ""},
		"rbd, many write to a file system": {"rbd", all(rwx), nil, "with a file system on an rbd image"},
		"rbd, many read":                   {"rbd", all(rox), filled, ""},
		"nvme, many read":                  {"nvmeof", all(rox), filled, "on an NVMe disk"},
		"flexVolume, one node":             {"gpfs", all(rwo), nil, ""},
		"flexVolume, raw device":           {"gpfs", all(rwo), block, "FlexVolume driver does not support volumeMode Block"},
		"a mode that is not invented yet":  {"rbd", all("ReadTwice"), nil, "ReadTwice is not supported"},
		"no kind said, none can":           {"", all(rwx), nil, "ReadWriteMany is not supported"},
		"no kind said, some can":           {"", all(rwx), block, ""},
		"capitals, as some backends write": {"iSCSI", all(rwo), nil, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := want()
			ceph(&w)
			w.Kind, w.AccessModes = tc.kind, tc.modes
			if tc.kind == "gpfs" {
				w.FlexDriver = "example.com/any"
			}
			if tc.edit != nil {
				tc.edit(&w)
			}
			err := mapper.Check(w)
			if (err == nil) != (tc.reason == "") {
				t.Fatalf("got %v, want %q", err, tc.reason)
			}
			if u, ok := errors.AsType[*mapper.UnsupportedError](err); ok && (!u.Claim || !strings.Contains(err.Error(), tc.reason)) {
				t.Errorf("got %v (the claim's: %t), want %q", err, u.Claim, tc.reason)
			}
		})
	}
}

func all(m ...corev1.PersistentVolumeAccessMode) []corev1.PersistentVolumeAccessMode { return m }

// A fault of the class is found before a volume is made if the class names its kind of connection,
// and when the volume is mapped otherwise.
func TestFaultOfTheClassIsFoundEarly(t *testing.T) {
	tests := map[string]struct {
		from   string
		change map[string]any
		edit   func(*mapper.Want)
		early  bool
		reason string
	}{
		"a kind that cannot be mapped":       {from: "nfs", edit: kind("nfs"), early: true, reason: `connected by "nfs"`},
		"found out late":                     {from: "nfs", reason: `connected by "nfs"`},
		"the class is wrong":                 {from: "nfs", edit: kind("iscsi"), reason: `"iscsi" according to the class, and by "nfs" according to the storage`},
		"no cluster-id":                      {from: "rbd", edit: func(w *mapper.Want) { kind("rbd")(w); w.Ceph.Key = "k" }, early: true, reason: "lacks the parameter cluster-id"},
		"no key":                             {from: "rbd", edit: func(w *mapper.Want) { kind("rbd")(w); w.Ceph.ClusterID = "c" }, early: true, reason: "ceph-secret: NAMESPACE/NAME"},
		"no pool":                            {from: "rbd", change: map[string]any{"name": "image"}, edit: ceph, reason: "POOL/IMAGE"},
		"no port":                            {from: "fibre-channel", change: map[string]any{"target_wwn": "", "target_wwns": nil, "wwn": nil}, reason: "no port"},
		"a high LUN without a name":          {from: "fibre-channel", change: map[string]any{"target_luns": []int{300, 300}, "wwn": nil}, reason: "LUN 300, and a PersistentVolume supports LUNs 0 to 255. The array numbers LUNs by host"},
		"replicas":                           {from: "nvmeof", change: map[string]any{"volume_replicas": []any{map[string]any{}, map[string]any{}}}, reason: "2 replicas"},
		"no NVMe transport that nodes speak": {from: "nvmeof", change: map[string]any{"transport_type": "fc"}, reason: "over tcp or rdma"},
		"a subsystem of many volumes":        {from: "nvmeof", change: map[string]any{"nqn": "nqn.2010-06.com.purestorage:flasharray.1234"}, edit: subsystemsVolume, reason: "cannot distinguish the volumes of one subsystem"},
		"a portal by its DNS name":           {from: "iscsi", change: map[string]any{"target_portal": "storage.example:3260"}, reason: "never by a DNS name"},
		"a DNS name without a port":          {from: "iscsi", change: map[string]any{"target_portal": "storage.example"}, reason: "target_ip_address"},
		"an NVMe portal by its DNS name":     {from: "nvmeof", change: map[string]any{"target_portal": "storage.example"}, edit: subsystemsVolume, reason: "takes addresses only"},
		"no portal":                          {from: "iscsi", change: map[string]any{"target_portal": ""}, reason: "reports no portal"},
		"discovery by other means":           {from: "iscsi", change: map[string]any{"discovery_auth_method": "KRB5"}, reason: `discovery requires authentication by "KRB5"`},
		"mount options of a FlexVolume": {from: "nfs", early: true, reason: "remove mountOptions", edit: func(w *mapper.Want) {
			w.Kind, w.FlexDriver, w.MountOptions = "nfs", "example.com/nfs-loop", []string{"noatime"}
		}},
		"readers of a class that writes": {from: "fibre-channel", early: true, reason: "remove rw from mountOptions", edit: func(w *mapper.Want) {
			readers(w)
			w.Kind, w.MountOptions = "fibre_channel", []string{"noatime,rw"}
		}},
		"marked read-only, of a class that writes": {from: "fibre-channel", change: map[string]any{"access_mode": "ro"}, reason: "remove rw", edit: func(w *mapper.Want) {
			w.MountOptions = []string{"rw"}
		}},
		"encrypted": {from: "rbd", change: map[string]any{"encrypted": true}, edit: ceph, reason: "encrypts its volumes"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := want()
			if tc.edit != nil {
				tc.edit(&w)
			}
			if err := mapper.Check(w); (err != nil) != tc.early {
				t.Errorf("before the volume exists: %v", err)
			}
			_, err := mapper.Map(capture(t, tc.from, tc.change), w)
			u, ok := errors.AsType[*mapper.UnsupportedError](err)
			if !ok || u.Claim || !strings.Contains(u.Reason, tc.reason) {
				t.Errorf("got %v, want %q", err, tc.reason)
			}
		})
	}
}

// A FlexVolume driver mounts the kind that the class names, and of the others those that the
// kubelet cannot mount.
func TestFlexVolumeDriverMountsTheKindThatTheClassNames(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, from string
		flex       bool
	}{
		"the kind is named":                     {"iscsi", "iscsi", true},
		"the kind is named in capitals":         {"ISCSI", "iscsi", true},
		"no kind is named":                      {"", "iscsi", false},
		"no kind is named, none can be mounted": {"", "nfs", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := want()
			w.Kind, w.FlexDriver = tc.kind, "example.com/any"
			m, err := mapper.Map(capture(t, tc.from, nil), w)
			if err != nil || (m.Source.FlexVolume != nil) != tc.flex {
				t.Errorf("the source is %+v, %v", m.Source, err)
			}
		})
	}
}

func kind(k string) func(*mapper.Want) { return func(w *mapper.Want) { w.Kind = k } }

// Some backends send only the lists.
func TestISCSIPortalIsTakenFromTheLists(t *testing.T) {
	c := capture(t, "iscsi-two-portals", map[string]any{"target_portal": nil, "target_iqn": nil, "target_lun": nil})
	w := want()
	w.Initiator = ""
	m, err := mapper.Map(c, w)
	if err != nil || m.Source.ISCSI.TargetPortal != "127.0.0.1:3260" || len(m.Source.ISCSI.Portals) != 1 {
		t.Errorf("%+v, %v", m.Source.ISCSI, err)
	}
}

// LUNs come as numbers, as text and as null; a path without one is no path.
func TestLUNIsReadInEveryFormThatBackendsSend(t *testing.T) {
	two := []string{"127.0.0.1:3260", "127.0.0.2:3260"}
	tests := map[string]map[string]any{
		"text":               {"target_lun": "7"},
		"text in lists":      {"target_lun": "7", "target_portals": two, "target_iqns": []string{iqn, iqn}, "target_luns": []string{"7", "7"}},
		"lists only, text":   {"target_lun": nil, "target_portals": two, "target_iqns": []string{iqn, iqn}, "target_luns": []string{"7", "7"}},
		"null in a list":     {"target_lun": 7, "target_portals": two, "target_iqns": []string{iqn, iqn}, "target_luns": []any{7, nil}},
		"first of list null": {"target_portal": nil, "target_portals": two, "target_iqns": []string{iqn, iqn}, "target_luns": []any{nil, 7}},
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			m, err := mapper.Map(connection(t, change), want())
			if err != nil || m.Source.ISCSI.Lun != 7 || m.Source.ISCSI.TargetPortal == "" {
				t.Errorf("%+v, %v", m.Source.ISCSI, err)
			}
		})
	}
	for name, change := range map[string]map[string]any{
		"text": {"target_lun": "7", "target_luns": []string{"7", "7"}, "wwn": nil}, "no list": {"target_lun": "7", "target_luns": nil, "target_wwns": nil, "wwn": nil},
	} {
		t.Run("fc "+name, func(t *testing.T) {
			m, err := mapper.Map(capture(t, "fibre-channel", change), want())
			if err != nil || *m.Source.FC.Lun != 7 || len(m.Source.FC.TargetWWNs) != 2 {
				t.Errorf("%+v, %v", m.Source.FC, err)
			}
		})
	}
}

// What cannot be read is a fault of the class, so that the claim says so and the volume is not kept
// by a run that is repeated for ever. The fault shows no value.
func TestUnreadableConnectionIsAFaultOfTheClass(t *testing.T) {
	tests := map[string]struct {
		from   string
		change map[string]any
		reason string
	}{
		"a LUN that is no number":    {"iscsi", map[string]any{"target_lun": "hush"}, "a LUN is not a number"},
		"a LUN that is an object":    {"iscsi", map[string]any{"target_lun": map[string]any{"hush": 1}}, "a LUN is not a number"},
		"no LUN":                     {"iscsi", map[string]any{"target_lun": nil, "target_iqn": "iqn.2001-01.com.example:all"}, "no LUN of the volume"},
		"a portal that is a list":    {"iscsi", map[string]any{"target_portal": []string{"hush"}}, "target_portal"},
		"fc, no LUN":                 {"fibre-channel", map[string]any{"target_lun": nil, "target_luns": nil, "wwn": nil}, "no LUN of the volume"},
		"fc, ports that are numbers": {"fibre-channel", map[string]any{"target_wwns": []int{1}}, "target_wwns"},
		"rbd, a name that is a list": {"rbd", map[string]any{"name": []string{"hush"}}, "name"},
		"nvme, a port that is true":  {"nvmeof", map[string]any{"target_port": true}, "target_port"},
		"encrypted in text":          {"iscsi", map[string]any{"encrypted": "hush"}, "encrypted"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := want()
			ceph(&w)
			_, err := mapper.Map(capture(t, tc.from, tc.change), w)
			u, ok := errors.AsType[*mapper.UnsupportedError](err)
			if !ok || u.Claim || !strings.Contains(u.Reason, tc.reason) || strings.Contains(u.Reason, "hush") {
				t.Errorf("got %v, want %q", err, tc.reason)
			}
		})
	}
}

// A limit that only Nova enforces is reported.
func TestUnenforcedNamesTheFrontEndQoS(t *testing.T) {
	if got := mapper.Unenforced(capture(t, "iscsi", nil)); got != "" {
		t.Error(got)
	}
	limited := capture(t, "iscsi", map[string]any{"qos_specs": map[string]any{"total_iops_sec": "100"}})
	if got := mapper.Unenforced(limited); !strings.Contains(got, "QoS") {
		t.Errorf("got %q", got)
	}
}

// Nodes log in by one initiator name only to a target that is the volume's own. On a target of many
// volumes they log in by their own names, if the config says so.
func TestInitiatorNameIsOnlyForTheVolumesOwnTarget(t *testing.T) {
	const shared = "iqn.1992-08.com.netapp:sn.1234:vs.3"
	for name, tc := range map[string]struct {
		iqn, initiator string
		refused        bool
	}{
		"own target":                      {iqn, "iqn.2026-11.io.example:nodes", false},
		"own target, capitals":            {strings.ToUpper(iqn), "iqn.2026-11.io.example:nodes", false},
		"own target, ID without dashes":   {"iqn.2010-01.com.example:" + strings.ReplaceAll(volumeID, "-", ""), "iqn.2026-11.io.example:nodes", false},
		"shared target":                   {shared, "iqn.2026-11.io.example:nodes", true},
		"shared target, nodes' own names": {shared, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := want()
			w.Initiator = tc.initiator
			m, err := mapper.Map(connection(t, map[string]any{"target_iqn": tc.iqn}), w)
			if (err != nil) != tc.refused {
				t.Fatalf("got %v", err)
			}
			if err == nil && (m.Source.ISCSI.InitiatorName != nil) != (tc.initiator != "") {
				t.Errorf("the PV's initiator name is %v", m.Source.ISCSI.InitiatorName)
			}
		})
	}
}

// What a source cannot use of what the storage offers is reported, and only that.
func TestMapWarnsOfWhatTheSourceCannotUse(t *testing.T) {
	two := map[string]any{"target_portals": []string{"127.0.0.1:3260", "127.0.0.2:3260"}, "target_iqns": []string{iqn, iqn + "-b"}, "target_luns": []int{1, 1}}
	tests := map[string]struct {
		from    string
		change  map[string]any
		warning string
	}{
		"one portal":                 {"iscsi", nil, ""},
		"a portal of another target": {"iscsi", two, "some paths to the volume are not used, such as " + iqn + "-b by 127.0.0.2:3260"},
		"CHAP of a target of many":   {"iscsi", map[string]any{"target_iqn": "iqn.1992-08.com.netapp:sn.1"}, "CHAP credentials belong to an initiator or a host"},
		"no CHAP, a target of many":  {"iscsi", map[string]any{"target_iqn": "iqn.1992-08.com.netapp:sn.1", "auth_method": nil}, ""},
		"nvme, one portal":           {"nvmeof", nil, ""},
		"nvme, three portals":        {"nvmeof", nvmeofV2, "only 192.0.2.10 of 3 portals is used"},
		"nvme, a DNS name first": {
			"nvmeof",
			map[string]any{"target_portal": nil, "portals": [][]any{{"storage.example", "4420", "tcp"}, {"192.0.2.10", "4420", "tcp"}}},
			"only 192.0.2.10 of 2 portals is used",
		},
		"fc, one LUN":                     {"fibre-channel", map[string]any{"wwn": nil}, ""},
		"fc, two LUNs":                    {"fibre-channel", map[string]any{"target_luns": []int{1, 2}, "wwn": nil}, "by another LUN than 1"},
		"fc, two LUNs, a name of its own": {"fibre-channel", map[string]any{"target_luns": []int{1, 2}}, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := want()
			w.Initiator = ""
			if tc.from == "nvmeof" {
				subsystemsVolume(&w)
			}
			m, err := mapper.Map(capture(t, tc.from, tc.change), w)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(m.Warnings, "\n"); (got == "") != (tc.warning == "") || !strings.Contains(got, tc.warning) {
				t.Errorf("got %q, want %q", got, tc.warning)
			}
		})
	}
}

// The kubelet compares a portal with the text of the kernel, so an IPv6 address has brackets, which
// Storwize leaves out, and is written in one way only.
func TestPortalIsWrittenAsTheKernelShowsIt(t *testing.T) {
	for portal, bracketed := range map[string]string{
		"2001:db8::1:3260": "[2001:db8::1]:3260", "[2001:db8::1]:3260": "[2001:db8::1]:3260", "192.0.2.1:3260": "192.0.2.1:3260",
		"192.0.2.1": "192.0.2.1", "[2001:0db8:0:0::1]:3260": "[2001:db8::1]:3260", "[2001:DB8::1]:3260": "[2001:db8::1]:3260",
		"2001:0DB8:0:0:0:0:0:1:3260": "[2001:db8::1]:3260",
	} {
		w := want()
		w.Initiator = ""
		m, err := mapper.Map(connection(t, map[string]any{"target_portal": portal}), w)
		if err != nil || m.Source.ISCSI.TargetPortal != bracketed {
			t.Errorf("%s became %v, %v", portal, m.Source.ISCSI, err)
		}
	}
}
