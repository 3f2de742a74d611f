package mapper_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/mapper"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// secret stands in no seed: where it is printed, a password is.
const secret = "hush-7Qx"

// Whatever a storage says of a connection, it is mapped to one source or refused, and its passwords
// are in the Secret only.
func FuzzConnection(f *testing.F) {
	f.Add("iscsi", captured)
	f.Add("iscsi", `{"target_portals":["[::1]:3260","10.0.0.1:3260"],"target_iqns":["iqn.a:b","iqn.a:c"],"target_luns":[0,"1"],"auth_method":"CHAP","discovery_auth_method":"CHAP"}`)
	f.Add("fibre_channel", `{"target_wwn":["500A0981","500a0982"],"target_lun":"3","target_luns":[1,2],"initiator_target_map":{"a":["b"]},"encrypted":null}`)
	f.Add("RBD", `{"name":"volumes/volume-1","hosts":["10.0.0.1","::1"],"ports":["6789",6789],"cluster_name":"ceph","auth_enabled":true,"auth_username":"cinder","access_mode":"ro"}`)
	f.Add("nvmeof", `{"target_nqn":"nqn.2014-08.org:a","target_portal":"10.0.0.1","target_port":4420,"transport_type":"tcp","ns_id":1,"portals":[["10.0.0.2",4420,"tcp"]],"vol_uuid":"x"}`)
	f.Add("local", `{"device_path":"/dev/x"}`)
	f.Fuzz(func(t *testing.T, kind, text string) {
		var fields map[string]any
		if json.Unmarshal([]byte(text), &fields) != nil || fields == nil {
			fields = map[string]any{}
		}
		for _, key := range []string{"auth_password", "discovery_auth_password", "secret", "keyring"} {
			fields[key] = secret
		}
		data, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		for _, driver := range []string{"", "example.com/any"} {
			w := want()
			w.FlexDriver = driver
			m, err := mapper.Map(volume.NewConnection(kind, data), w)
			source, _ := json.Marshal(m.Source)
			mustBeInForm(t, string(data), m, err)
			if printed := fmt.Sprint(err, m.Warnings, string(source)); strings.Contains(printed, secret) {
				t.Errorf("of %s %s is printed: %s", kind, data, printed)
			}
			if n := sources(m.Source); err == nil && n != 1 || err != nil && n != 0 {
				t.Errorf("%s %s is mapped to %d sources: %s, %v", kind, data, n, source, err)
			}
		}
	})
}

// mustBeInForm checks that a storage's control characters are nowhere, and that a FlexVolume's
// options are coordinates of the volume.
func mustBeInForm(t *testing.T, said string, m mapper.Mapping, err error) {
	t.Helper()
	var source any
	if text, err := json.Marshal(m.Source); err != nil || json.Unmarshal(text, &source) != nil {
		t.Fatal(string(text), err)
	}
	texts := append(textsOf(source), m.Warnings...)
	if err != nil {
		texts = append(texts, err.Error())
	}
	if m.Secret != nil {
		for key, value := range m.Secret.Data {
			texts = append(texts, key, string(value))
		}
	}
	for _, text := range texts {
		if hasControls(text) {
			t.Errorf("%s becomes %q", said, text)
		}
	}
	if m.Source.FlexVolume == nil {
		return
	}
	for name, value := range m.Source.FlexVolume.Options {
		if strings.ContainsAny(name+value, " ,'\"$`;@") || strings.Contains(value, "..") {
			t.Errorf("%s has the option %s: %q", said, name, value)
		}
	}
}

// textsOf returns all texts in a value that was read from JSON.
func textsOf(value any) []string {
	var out []string
	switch v := value.(type) {
	case string:
		out = append(out, v)
	case []any:
		for _, one := range v {
			out = append(out, textsOf(one)...)
		}
	case map[string]any:
		for name, one := range v {
			out = append(append(out, name), textsOf(one)...)
		}
	}
	return out
}

// sources returns how many sources are set.
func sources(source corev1.PersistentVolumeSource) int {
	n := 0
	for _, field := range reflect.ValueOf(source).Fields() {
		if !field.IsNil() {
			n++
		}
	}
	return n
}
