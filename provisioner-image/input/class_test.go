package input_test

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/mapper"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// with reads the task of a class with these properties.
func with(t *testing.T, properties map[string]string, edit func(*contract.Requests, fstest.MapFS)) (input.Task, error) {
	t.Helper()
	return input.Read(sources(t, func(r *contract.Requests, files fstest.MapFS) {
		maps.Copy(r.Items[0].Properties, properties)
		if edit != nil {
			edit(r, files)
		}
	}))
}

// The names of the nodes are spelled as the OpenStack connector spells them.
func TestPropertiesNameTheClient(t *testing.T) {
	task, err := with(t, map[string]string{
		"initiator": "iqn.2020-01.org.example:all", "host": "k8s", "ip": "192.0.2.7", "multipath": "true", "attach-api": "attachments",
		"wwpns": "50:01:43:80:18:6B:3F:64, 50014380186b3f66", "wwnns": "50014380186b3f65", "nqn": "nqn.2014-08.org.nvmexpress:uuid:x",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := volume.Access{Method: "attachments", Client: volume.Client{
		Initiator: "iqn.2020-01.org.example:all", Host: "k8s", IP: "192.0.2.7", Platform: "x86_64", OSType: "linux", Multipath: true,
		WWPNs: []string{"50014380186b3f64", "50014380186b3f66"}, WWNNs: []string{"50014380186b3f65"},
		NQN: "nqn.2014-08.org.nvmexpress:uuid:x",
	}}
	if diff := cmp.Diff(want, task.Volume.Access); diff != "" {
		t.Error(diff)
	}
}

// Names, metadata, hints and zone are read, and a claim's text in them is made harmless.
func TestPropertiesDescribeTheVolume(t *testing.T) {
	task, err := with(t, map[string]string{
		"volume-name": "{cluster}-{claim-namespace}-{claim-name}", "volume-metadata": "team=blue, from={storage-class}",
		"scheduler-hints": `{"same_host": ["a"], "query": "[\"=\", \"$free\", 1]"}`, "availability": "selected-node",
		"snapshot": "s-1", "adopt": "shop/data: v-1",
	}, func(r *contract.Requests, _ fstest.MapFS) {
		r.Items[0].SelectedZone, r.Items[0].Name = "east", `da"ta`
	})
	if err != nil {
		t.Fatal(err)
	}
	v := task.Volume
	if v.Name != "it_s one-shop-da_ta" || v.Zone != "east" || v.Source.SnapshotID != "s-1" || v.Adopt != "" {
		t.Errorf("%+v", v)
	}
	terms := task.PV.Spec.NodeAffinity.Required.NodeSelectorTerms
	if len(terms) != 1 || terms[0].MatchExpressions[0].Values[0] != "east" {
		t.Errorf("pods are kept in %v", terms)
	}
	if v.Metadata["team"] != "blue" || v.Metadata["from"] != "silver" || v.Metadata["flex-provisioner.io/claim-name"] != "da_ta" {
		t.Errorf("metadata %v", v.Metadata)
	}
	if len(v.Hints) != 2 || v.Hints["query"] != `["=", "$free", 1]` {
		t.Errorf("hints %v", v.Hints)
	}
}

// The Ceph key is read from a file in either form.
func TestPropertiesDescribeTheSource(t *testing.T) {
	for form, key := range map[string]string{"QVFCa2V5\n": "QVFCa2V5", "[client.cinder]\n\tkey = QVFCa2V5==\n": "QVFCa2V5=="} {
		task, err := with(t, map[string]string{
			"connection": "RBD", "write-initiator": "false", "cluster-id": "c", "image-features": "layering", "mounter": "rbd-nbd",
			"ceph-user": "u", "ceph-secret": "ns/name", "flex-driver": "d", "rbd-source": "native",
		}, func(_ *contract.Requests, f fstest.MapFS) { f["secret/ceph.key"] = &fstest.MapFile{Data: []byte(form)} })
		if err != nil {
			t.Fatal(err)
		}
		want := mapper.Options{
			Kind: "rbd", FSType: "xfs", FlexDriver: "d",
			Ceph: mapper.Ceph{
				ClusterID: "c", ImageFeatures: "layering", Mounter: "rbd-nbd", User: "u", Native: true,
				Secret: corev1.SecretReference{Namespace: "ns", Name: "name"}, Key: "hidden",
			},
		}
		if task.Ceph.Key.Reveal() != key {
			t.Errorf("the key of %q is %q", form, task.Ceph.Key.Reveal())
		}
		task.Ceph.Key = "hidden"
		if diff := cmp.Diff(want, task.Options); diff != "" {
			t.Error(diff)
		}
	}
}

func TestFaultyPropertyIsRefused(t *testing.T) {
	tests := map[string]struct{ name, value, text string }{
		"attach API":        {"attach-api", "old", `"old" is none of`},
		"multipath":         {"multipath", "perhaps", "neither true nor false"},
		"initiator":         {"initiator", "nodes", "no iqn, eui or naa name"},
		"address":           {"ip", "here", "is no address"},
		"port name":         {"wwpns", "5001", "16 hexadecimal digits"},
		"node name":         {"wwnns", "x", "16 hexadecimal digits"},
		"no zone":           {"availability", "selected-node", "volumeBindingMode WaitForFirstConsumer"},
		"nqn":               {"nqn", "x", "property nqn"},
		"hints":             {"scheduler-hints", "[1]", "not an object in JSON"},
		"placeholder":       {"volume-name", "{user}", "placeholder {user} is unknown"},
		"metadata":          {"volume-metadata", "team", "is not KEY=VALUE"},
		"metadata of ours":  {"volume-metadata", "flex-provisioner.io/claim-uid=x", "the key is ours"},
		"Secret":            {"ceph-secret", "name", "is not NAMESPACE/NAME"},
		"source":            {"rbd-source", "krbd", `"krbd" is none of ceph-csi, native`},
		"mounter":           {"mounter", "fuse", `"fuse" is none of`},
		"initiator written": {"write-initiator", "x", "neither true nor false"},
		"clone":             {"smartclone", "x", "neither true nor false"},
		"a file elsewhere":  {"cloud-config", "../../etc/passwd", "is not in the image"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := with(t, map[string]string{tc.name: tc.value}, nil)
			f, ok := errors.AsType[*input.Error](err)
			if !ok || f.Code != contract.ExitConfig || !strings.Contains(f.Error(), tc.text) {
				t.Errorf("error %v, want %q", err, tc.text)
			}
		})
	}
}

// A list is about the class only.
func TestListNeedsNoClaim(t *testing.T) {
	in := sources(t, func(r *contract.Requests, files fstest.MapFS) {
		r.Verb, r.Items = contract.List, nil
		delete(files, "pv.json")
	})
	in.Verb = contract.List
	if task, err := input.Read(in); err != nil || !task.Login.IsNoauth() {
		t.Errorf("%+v, %v", task, err)
	}
}

// No property and no variable is needed.
func TestCloudsFileInTheSecretIsEnough(t *testing.T) {
	task, err := with(t, map[string]string{"cloud": "one"}, func(_ *contract.Requests, f fstest.MapFS) {
		delete(f, "secret/cloud.conf")
		f["secret/clouds.yaml"] = &fstest.MapFile{Data: []byte(
			"clouds: {one: {auth: {auth_url: https://k/v3, application_credential_id: i, application_credential_secret: s}}, two: {auth: {}}}",
		)}
	})
	if err != nil || task.Login.AuthURL != "https://k/v3" || task.Login.AppCredentialID != "i" {
		t.Errorf("%+v, %v", task.Login, err)
	}
}

// A cloud config that was written for another program names its files by their paths there.
func TestPathOfALoginsFileIsItsNameInTheSecret(t *testing.T) {
	const ca = "secret/ca.pem"
	for name, tc := range map[string]struct{ path, says string }{
		"of another program":  {"/etc/kubernetes/ca.pem", ""},
		"where it is mounted": {contract.SecretDir + "/ca.pem", ""},
		"its name":            {"ca.pem", ""},
		"not there":           {"/etc/kubernetes/other.pem", "file /etc/kubernetes/other.pem is not in the image: put it as other.pem into the Secret"},
		"outside":             {"../pv.json", "put it as pv.json into the Secret"},
		"the folder above":    {"..", "file .. is not in the image"},
		"the folder":          {"/", "read / from the config's files-from-secret"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := with(t, nil, func(_ *contract.Requests, f fstest.MapFS) {
				f["secret/cloud.conf"] = &fstest.MapFile{Data: []byte("[Global]\ncinder-endpoint=https://c/v3\nca-file=" + tc.path + "\n")}
				f[ca] = &fstest.MapFile{Data: []byte("junk")}
			})
			want := tc.says
			if want == "" {
				want = "holds no certificate in PEM" // it was read
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		})
	}
}

func TestPropertyCloudNamesTheSectionOfACloudConfig(t *testing.T) {
	task, err := with(t, map[string]string{"cloud": "two"}, func(_ *contract.Requests, f fstest.MapFS) {
		f["secret/cloud.conf"] = &fstest.MapFile{Data: []byte(
			"[Global \"one\"]\ncinder-endpoint=http://one/v3\n[Global \"two\"]\ncinder-endpoint=http://two/v3\n",
		)}
	})
	if err != nil || task.Login.Endpoint != "http://two/v3" {
		t.Errorf("%+v, %v", task.Login, err)
	}
}
