package mapper_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/mapper"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/pv"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// canary is what no PV and no message may show.
const canary = "CANARY"

// places are the details that may stand on a PV, and in a message. The list is written here a
// second time: who lengthens it thinks twice.
var places = []string{
	"target_portal", "target_portals", "target_iqn", "target_iqns", "auth_method", "discovery_auth_method", "target_wwn", "target_wwns", "wwn", "addressing_mode",
	"nqn", "target_nqn", "target_port", "transport_type", "portals", "vol_uuid", "volume_nguid", "hosts", "ports", "cluster_name",
	"export", "name", "format", "device_path", "access_mode",
}

// Whatever a storage says, and however deep, stands on the PV and in a message only if it is a
// coordinate of the volume. The rest is in the Secret or dropped.
func TestNothingButCoordinatesLeavesTheSecret(t *testing.T) {
	for name, connection := range fixtures(t) {
		for path, changed := range planted(connection.details) {
			for _, driver := range []string{"", "example.com/any"} {
				t.Run(fmt.Sprintf("%s, %s, %q", name, path, driver), func(t *testing.T) { checkCanary(t, connection.kind, path, driver, changed) })
			}
		}
	}
}

func checkCanary(t *testing.T, kind, path, driver string, details any) {
	t.Helper()
	w := want()
	ceph(&w)
	w.Initiator = ""
	if w.FlexDriver = driver; driver != "" {
		w.Kind = kind
	}
	first, rest, nested := strings.Cut(path, ".")
	if driver == "" {
		first = strings.ToLower(first) // in which the JSON package looks for a field
	}
	public := slices.Contains(places, first) && (!nested || driver == "" && !strings.Contains(rest, "."))
	printed := mappedTo(t, kind, details, w)
	if !public && strings.Contains(strings.ToUpper(printed), canary) {
		t.Error(printed)
	}
}

// mappedTo returns the PV of a connection, and everything that is printed of it.
func mappedTo(t *testing.T, kind string, details any, w mapper.Want) string {
	t.Helper()
	data, err := json.Marshal(details)
	if err != nil {
		t.Fatal(err)
	}
	c := volume.NewConnection(kind, data)
	m, err := mapper.Map(c, w)
	if err != nil {
		return err.Error()
	}
	complete, err := pv.Build(frame("uid", w), m.Source, 1, record(m, w))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(complete)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(string(text), m.Warnings, mapper.Unenforced(c), c)
}

// fixture is a connection, with the details that Cinder sent.
type fixture struct {
	kind    string
	details map[string]any
}

// fixtures returns what a real Cinder sent of every kind, and what its VMDK driver sends
// (cinder/volume/drivers/vmware/vmdk.py, _get_connection_info): an object with the login to
// vCenter. One way to export a volume sends its kind among the details.
func fixtures(t *testing.T) map[string]fixture {
	t.Helper()
	files, err := filepath.Glob("testdata/connections/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	out := map[string]fixture{"vmdk": {"vmdk", map[string]any{
		"volume": "vm-1", "volume_id": volumeID, "name": "volume-x", "vmdk_path": "[ds] a/b.vmdk", "config": map[string]any{"vmware_host_ip": "192.0.2.1", "vmware_host_password": "hush"},
	}}}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var info struct {
			Kind string         `json:"driver_volume_type"`
			Data map[string]any `json:"data"`
		}
		if err := json.Unmarshal(text, &info); err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(file)] = fixture{info.Kind, info.Data}
		attached := maps.Clone(info.Data)
		attached["driver_volume_type"], attached["attachment_id"] = info.Kind, volumeID
		out[filepath.Base(file)+", attached"] = fixture{info.Kind, attached}
	}
	return out
}

// planted returns copies of a value, each with the canary in one place: instead of what is there,
// or under a further key of an object.
func planted(value any) map[string]any {
	out := map[string]any{}
	switch v := value.(type) {
	case map[string]any:
		for key, one := range v {
			putAll(out, key, planted(one), func(changed any) any {
				copied := maps.Clone(v)
				copied[key] = changed
				return copied
			})
		}
		for _, key := range []string{"password", "secret", "key", "token", "keyring", "login", "options", "Name", "anything"} {
			copied := maps.Clone(v)
			copied[key] = map[string]any{"deep": []any{map[string]any{"password": canary}}}
			out[key+".deep"] = copied
			copied = maps.Clone(v)
			copied[key] = canary
			out[key] = copied
		}
	case []any:
		for i, one := range v {
			putAll(out, fmt.Sprint(i), planted(one), func(changed any) any {
				copied := slices.Clone(v)
				copied[i] = changed
				return copied
			})
		}
	}
	out[""] = canary
	return out
}

func putAll(into map[string]any, key string, changes map[string]any, around func(any) any) {
	for path, changed := range changes {
		into[strings.TrimSuffix(key+"."+path, ".")] = around(changed)
	}
}
