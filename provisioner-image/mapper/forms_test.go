package mapper_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/mapper"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// complete are connections that together have every field that this package reads, each so that it
// is used.
var complete = map[string]fixture{
	"iscsi": {"iscsi", map[string]any{
		"target_portal": "192.0.2.1:3260", "target_iqn": iqn, "target_lun": "1", "target_portals": []any{"192.0.2.1:3260", "192.0.2.2:3260"},
		"target_iqns": []any{iqn, iqn}, "target_luns": []any{1, 1}, "auth_method": "CHAP", "auth_username": "user", "auth_password": "hush",
		"discovery_auth_method": "CHAP", "discovery_auth_username": "finder", "discovery_auth_password": "hush", "access_mode": "rw", "encrypted": false,
		"qos_specs": map[string]any{"total_iops_sec": "100"}, "export": "192.0.2.1:/x", "name": "volume-x",
	}},
	"iscsi by lists": {"iscsi", map[string]any{
		"target_portals": []any{"192.0.2.1:3260", "192.0.2.2:3260"}, "target_iqns": []any{iqn, iqn}, "target_luns": []any{"1", "1"},
	}},
	"fibre_channel": {"fibre_channel", map[string]any{"target_wwn": "524a937aaabbcc00", "target_lun": "1"}},
	"fibre_channel by lists": {"fibre_channel", map[string]any{
		"target_wwn": []any{"524a937aaabbcc00"}, "target_wwns": []any{"524a937aaabbcc00", "524a937aaabbcc01"}, "target_luns": []any{"1", "1"},
	}},
	"fibre_channel by name": {"fibre_channel", map[string]any{"target_lun": 300, "wwn": "3624a93704b9f79e3a3a64e9fb4906acd"}},
	"rbd":                   {"rbd", map[string]any{"name": "volumes/volume-1", "auth_username": "cinder"}},
	"nvmeof": {"nvmeof", map[string]any{
		"target_portal": "192.0.2.1", "target_port": "4420", "transport_type": "tcp", "nqn": "nqn.2014-08.org.nvmexpress:uuid:" + volumeID, "vol_uuid": volumeID,
	}},
	"nvmeof by lists": {"nvmeof", map[string]any{
		"target_nqn": "nqn.2014-08.org.nvmexpress:uuid:" + volumeID, "portals": []any{[]any{"192.0.2.1", "4420", "tcp"}}, "volume_nguid": "00b9c8d7e6f5a40124a9370012345678",
	}},
	"nvmeof by replicas": {"nvmeof", map[string]any{"volume_replicas": []any{map[string]any{
		"target_nqn": "nqn.2014-08.org.nvmexpress:uuid:" + volumeID, "portals": []any{[]any{"192.0.2.1", "4420", "tcp"}},
	}}}},
}

// What a storage may add to a text, or begin it with.
var (
	hostileEnds = []string{
		"\nEVIL", "\r\nEVIL", "\x1b[31mEVIL", "\aEVIL", "\u0085EVIL", "\x7fEVIL", "\x00EVIL", "\u202eEVIL", ",EVIL", " --EVIL", "/..EVIL", "'EVIL", `"EVIL`, "$(EVIL)", "`EVIL`", ";EVIL", "@EVIL",
	}
	hostileBeginnings = []string{"--EVIL", "/..EVIL", " EVIL", "\nEVIL", "EVIL@", "EVIL,"}
)

// A hostile text of a storage gets into no source, neither in a field of its own nor as an option,
// and no control character gets into a Secret or a message.
func TestNoTextOfAStorageLeavesItsForm(t *testing.T) {
	for name, c := range complete {
		for _, edit := range []func(*mapper.Want){func(*mapper.Want) {}, func(w *mapper.Want) { w.FlexDriver, w.Kind = "example.com/any", c.kind }} {
			w := want()
			ceph(&w)
			w.Initiator = ""
			edit(&w)
			if _, err := mapper.Map(volume.NewConnection(c.kind, encoded(t, c.details)), w); err != nil {
				t.Fatalf("%s as it is: %v", name, err)
			}
			for _, change := range hostileChanges() {
				for path, details := range changes(c.details, change) {
					checkForm(t, name+" "+path, volume.NewConnection(c.kind, encoded(t, details)), w)
				}
			}
		}
	}
}

func checkForm(t *testing.T, name string, c volume.Connection, w mapper.Want) {
	t.Helper()
	m, err := mapper.Map(c, w)
	if err != nil {
		u, ok := errors.AsType[*mapper.UnsupportedError](err)
		if !ok || u.Claim || hasControls(err.Error()) {
			t.Errorf("%s: the error is %q", name, err)
		}
		return
	}
	source := string(encoded(t, m.Source))
	if strings.Contains(source, "EVIL") || strings.Contains(fmt.Sprint(m.Warnings), "EVIL") {
		t.Errorf("%s: %s %q", name, source, m.Warnings)
	}
	if m.Secret == nil {
		return
	}
	for key, value := range m.Secret.Data {
		if hasControls(key + string(value)) {
			t.Errorf("%s: the Secret's %s is %q", name, key, value)
		}
	}
}

func hasControls(text string) bool { return strings.ContainsFunc(text, unicode.IsControl) }

func encoded(t *testing.T, value any) []byte {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func hostileChanges() []func(string) string {
	var out []func(string) string
	for _, end := range hostileEnds {
		out = append(out, func(text string) string { return text + end })
	}
	for _, beginning := range hostileBeginnings {
		out = append(out, func(text string) string { return beginning + text })
	}
	return out
}

// changes returns copies of a value, each with one of its texts changed.
func changes(value any, change func(string) string) map[string]any {
	out := map[string]any{}
	switch v := value.(type) {
	case string:
		out[""] = change(v)
	case map[string]any:
		for key, one := range v {
			putAll(out, key, changes(one, change), func(changed any) any {
				copied := maps.Clone(v)
				copied[key] = changed
				return copied
			})
		}
	case []any:
		for i, one := range v {
			putAll(out, fmt.Sprint(i), changes(one, change), func(changed any) any {
				copied := slices.Clone(v)
				copied[i] = changed
				return copied
			})
		}
	}
	return out
}

// A field that is added to the description of a connection needs a form of its own, and a place
// among the complete connections above.
func TestEveryFieldOfAConnectionHasAForm(t *testing.T) {
	known := map[string]bool{}
	for _, c := range complete {
		addKeys(known, c.details)
	}
	fields := 0
	for key, kind := range jsonFields(t) {
		fields++
		if !known[key] {
			t.Errorf("no complete connection has the field %s", key)
		}
		if strings.TrimLeft(kind, "[]*") == "string" {
			t.Errorf("the field %s is a %s: give it a type of forms.go", key, kind)
		}
	}
	if fields < 25 {
		t.Errorf("only %d fields were found", fields)
	}
}

func addKeys(into map[string]bool, value any) {
	switch v := value.(type) {
	case map[string]any:
		for key, one := range v {
			into[key] = true
			addKeys(into, one)
		}
	case []any:
		for _, one := range v {
			addKeys(into, one)
		}
	}
}

// jsonFields returns the fields of all structs of the package that are read from JSON, with their
// types.
func jsonFields(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if field, ok := node.(*ast.Field); ok && field.Tag != nil {
				if key := reflect.StructTag(strings.Trim(field.Tag.Value, "`")).Get("json"); key != "" {
					out[key] = types.ExprString(field.Type)
				}
			}
			return true
		})
	}
	return out
}

// The names and addresses of real arrays have the forms. Each was read in the driver's source or its tests in Cinder's tree, or in an array's manual.
func TestNamesOfRealArraysHaveTheirForms(t *testing.T) {
	for driver, c := range map[string]fixture{
		"target named by cinder.conf":               {"iscsi", map[string]any{"target_iqn": "iqn.2010-10.org.openstack:volume-" + volumeID}},
		"dell_emc/sc/storagecenter_iscsi.py":        {"iscsi", map[string]any{"target_iqn": "iqn.2002-03.com.compellent:5000d31000fcbe43"}},
		"netapp/dataontap/block_base.py":            {"iscsi", map[string]any{"target_iqn": "iqn.1992-08.com.netapp:sn.574e54ab4e6c11e49fe700a09816b2d2:vs.3"}},
		"fujitsu/eternus_dx, capitals, underscores": {"iscsi", map[string]any{"target_iqn": "iqn.2000-09.com.FUJITSU:storage-system.eternus_dxl:00AB"}},
		"an eui":                         {"iscsi", map[string]any{"target_iqn": "eui.02004567A425678D"}},
		"a naa":                          {"iscsi", map[string]any{"target_iqn": "naa.52004567BA64678D52004567BA64678D"}},
		"ibm/storwize_svc, IPv6":         {"iscsi", map[string]any{"target_portal": "0:0:0:0:0:ffff:c0a8:19:3260"}},
		"veritas_access, IPv6":           {"iscsi", map[string]any{"target_portal": "[2001:db8::1]:3260"}},
		"inspur, another port":           {"iscsi", map[string]any{"target_portal": "10.63.165.216:2232"}},
		"no port":                        {"iscsi", map[string]any{"target_portal": "192.0.2.1"}},
		"a password of every character":  {"iscsi", map[string]any{"auth_password": " !\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~aA0 "}},
		"a password that looks like one": {"iscsi", map[string]any{"auth_password": "--op=delete"}},
		"macrosan, colons":               {"fibre_channel", map[string]any{"target_wwn": []any{"50:0B:34:20:01:00:46:05"}}},
		"dell_emc/sc, capitals":          {"fibre_channel", map[string]any{"target_wwn": []any{"5000D31000FCBE3D"}}},
		"pure.py, the disk's name":       {"fibre_channel", map[string]any{"target_lun": 300, "wwn": "3624a93709714b5cb91634c470002b2c8"}},
		"a disk's name with a type":      {"fibre_channel", map[string]any{"target_lun": 300, "wwn": "naa.624a93709714b5cb91634c470002b2c8"}},
		"rbd.py":                         {"rbd", map[string]any{"name": "cinder-volumes.ssd_1/volume-" + volumeID, "auth_username": "cinder.backup"}},
		"targets/nvmet.py":               {"nvmeof", map[string]any{"nqn": "nqn.nvme-subsystem-1-" + volumeID}},
		"netapp/dataontap/nvme_library":  {"nvmeof", map[string]any{"nqn": "nqn.1992-08.com.netapp:sn.d2:subsystem.openstack-" + volumeID}},
		"dell_emc/powerstore":            {"nvmeof", map[string]any{"nqn": "nqn.1988-11.com.dell:powerstore:00:" + volumeID, "vol_uuid": nil, "volume_nguid": "9c1b5d6e0f7a8b2c68ccf09800aabbcc"}},
		"pure.py, NVMe":                  {"nvmeof", map[string]any{"vol_uuid": nil, "volume_nguid": "0009714b5cb916324a9374c470002b2c8"}},
		"vastdata":                       {"nvmeof", map[string]any{"vol_uuid": nil, "volume_nguid": "b2134f8e-9378-4d2b-af12-5dfe7c9a84bc"}},
		"dell_emc/powermax, Fibre Channel beside TCP": {"nvmeof", map[string]any{"target_portal": nil, "target_port": nil, "transport_type": nil, "portals": []any{
			[]any{"nn-0x20000090fa942779:pn-0x10000090fa942779", "none", "fc"}, []any{"[2001:db8::1]", 4420, "TCP"},
		}}},
	} {
		w := want()
		ceph(&w)
		w.Initiator = ""
		details := maps.Clone(complete[c.kind].details)
		maps.Copy(details, c.details)
		if c.kind == "iscsi" {
			maps.DeleteFunc(details, func(key string, _ any) bool { return strings.HasSuffix(key, "s") && strings.HasPrefix(key, "target_") })
		}
		if _, err := mapper.Map(volume.NewConnection(c.kind, encoded(t, details)), w); err != nil {
			t.Errorf("%s: %v", driver, err)
		}
	}
}

// What has not the form of its kind is refused, and the message shows it.
func TestATextOfAnotherFormIsRefused(t *testing.T) {
	for _, c := range []fixture{
		{"iscsi", map[string]any{"target_portal": "192.0.2.1:0"}},
		{"iscsi", map[string]any{"target_portal": "192.0.2.1:65536"}},
		{"iscsi", map[string]any{"target_portal": "192.0.2.1:3260,1"}},
		{"iscsi", map[string]any{"target_portal": "a/b:3260"}},
		{"iscsi", map[string]any{"target_iqn": "iqn.2010-10.org.openstack:a/b"}},
		{"iscsi", map[string]any{"target_iqn": "volume-" + volumeID}},
		{"fibre_channel", map[string]any{"target_wwn": "524a937aaabbcc0"}},
		{"fibre_channel", map[string]any{"target_wwn": "524a937aaabbcc0g"}},
		{"rbd", map[string]any{"name": "pool/.."}},
		{"rbd", map[string]any{"name": "pool/namespace/image"}},
		{"rbd", map[string]any{"name": "pool/image@snapshot"}},
		{"rbd", map[string]any{"name": "-pool/image"}},
		{"nvmeof", map[string]any{"nqn": "nqn.2014-08.org:uuid:" + volumeID + ",hostnqn=x"}},
		{"nvmeof", map[string]any{"target_portal": "192.0.2.1,hostnqn=x"}},
		{"nvmeof", map[string]any{"target_port": "4420,hostnqn=x"}},
		{"nvmeof", map[string]any{"vol_uuid": "a/b"}},
	} {
		w := want()
		ceph(&w)
		w.Initiator = ""
		details := maps.Clone(complete[c.kind].details)
		maps.Copy(details, c.details)
		_, err := mapper.Map(volume.NewConnection(c.kind, encoded(t, details)), w)
		for _, value := range c.details {
			if u, ok := errors.AsType[*mapper.UnsupportedError](err); !ok || u.Claim || !strings.Contains(u.Reason, fmt.Sprintf("%q", value)) {
				t.Errorf("%v: %v", c.details, err)
			}
		}
	}
	flexible := want() // a FlexVolume driver takes every kind
	flexible.FlexDriver = "example.com/driver"
	if _, err := mapper.Map(volume.NewConnection("is\ncsi", []byte(`{}`)), flexible); err == nil || hasControls(err.Error()) {
		t.Errorf("a kind of two lines: %v", err)
	}
}

// A storage in the hands of an attacker could otherwise keep a run busy for minutes.
func TestManyPortalsOrPortsAreRefused(t *testing.T) {
	for _, n := range []int{64, 65} {
		portals := strings.Repeat(`,"192.0.2.1:3260"`, n)[1:]
		targets := strings.Repeat(`,"`+iqn+`"`, n)[1:]
		for kind, details := range map[string]string{
			"iscsi":         `{"target_lun": 1, "target_portals": [` + portals + `], "target_iqns": [` + targets + `]}`,
			"fibre_channel": `{"target_lun": 1, "target_wwns": [` + strings.Repeat(`,"20210002AC00383D"`, n)[1:] + `]}`,
		} {
			_, err := described(t, kind, details, nil)
			if unsupported, ok := errors.AsType[*mapper.UnsupportedError](err); ok != (n > 64) || ok && (unsupported.Claim || !strings.Contains(err.Error(), "65 portals or ports")) {
				t.Errorf("%s, %d: %v", kind, n, err)
			}
		}
	}
}
