package volume_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// A storage is sent further keys beside the known ones, and a PV records them.
func TestFurtherKeysOfAClientSurviveItsRecord(t *testing.T) {
	want := volume.Client{
		Initiator: "iqn.2020-01.org.example:all", Host: "k8s", WWPNs: []string{"50014380186b3f64"}, HostID: "h",
		Extra: map[string]any{"uuid": "u", "system uuid": "s", "found_dsc": true},
	}
	data, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{`"host":"k8s"`, `"uuid":"u"`, `"system uuid":"s"`, `"found_dsc":true`, `"nvme_hostid":"h"`, `"multipath":false`} {
		if !strings.Contains(string(data), text) {
			t.Errorf("no %s in %s", text, data)
		}
	}
	var got volume.Client
	if err := json.Unmarshal(data, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A further key does not replace a field, and without further keys the record is what it was.
func TestFurtherKeysOfAClientReplaceNoField(t *testing.T) {
	data, err := json.Marshal(volume.Client{Host: "k8s", Extra: map[string]any{"host": "other"}})
	if err != nil || !strings.Contains(string(data), `"host":"k8s"`) {
		t.Errorf("%s, %v", data, err)
	}
	data, err = json.Marshal(volume.Client{Host: "k8s"})
	if err != nil || string(data) != `{"host":"k8s","multipath":false}` {
		t.Errorf("%s, %v", data, err)
	}
}

// Every field has a name that no further key may have.
func TestEveryFieldOfAClientIsKnownAsOne(t *testing.T) {
	client := reflect.TypeFor[volume.Client]()
	for field := range client.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "-" && !volume.IsClientField(name) {
			t.Errorf("%s is not known as a field", name)
		}
	}
}
