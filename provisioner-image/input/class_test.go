package input_test

import (
	"errors"
	"maps"
	"slices"
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
	return read(sources(t, func(r *contract.Requests, files fstest.MapFS) {
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
		"wwpns": "50:01:43:80:18:6B:3F:64, 0x50014380186b3f66", "wwnns": "50014380186b3f65", "nqn": "nqn.2014-08.org.nvmexpress:uuid:x",
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

// Standalone-cinder and the plugin of earlier Kubernetes read the names in any case.
func TestNamesOfPropertiesAreReadInAnyCase(t *testing.T) {
	task, err := with(t, map[string]string{"Type": "fast", "SmartClone": "", "Volume-Name": "x-{claim-name}", "type": ""}, nil)
	if err == nil || !strings.Contains(err.Error(), `properties "Type" and "type" are one property: remove one of them`) {
		t.Errorf("one property in two cases: %+v, %v", task.Volume, err)
	}
	task, err = read(sources(t, func(r *contract.Requests, _ fstest.MapFS) {
		r.Items[0].Properties = map[string]string{"Type": "fast", "FSTYPE": "ext4", "SmartClone": ""}
	}))
	if err != nil || task.Volume.Type != "fast" || task.FSType != "ext4" {
		t.Errorf("%+v: %v", task.Volume, err)
	}
}

// The file system is written as everywhere or as for CSI drivers, or both if they say the same.
func TestFileSystemIsWrittenInEitherWay(t *testing.T) {
	for name, properties := range map[string]map[string]string{
		"ours": {"fsType": "ext4"}, "CSI": {"fsType": "", "csi.storage.k8s.io/fstype": "ext4"},
		"both": {"fsType": "ext4", "csi.storage.k8s.io/fstype": "ext4"},
	} {
		if task, err := with(t, properties, nil); err != nil || task.FSType != "ext4" {
			t.Errorf("%s: %q, %v", name, task.FSType, err)
		}
	}
}

// A claim's user gives Cinder's scheduler hints in the annotations that the class allows, and no
// others.
func TestClaimGivesTheHintsThatTheClassAllows(t *testing.T) {
	const other = "6feffd2e-407e-4ab6-b316-4cc0218d4662"
	allowed := map[string]string{"hint-annotations": "different_host=example.com/away-from, query=example.com/query", "scheduler-hints": `{"same_host": ["a"]}`}
	annotated := func(annotations map[string]string) func(*contract.Requests, fstest.MapFS) {
		return func(r *contract.Requests, _ fstest.MapFS) { r.Items[0].Annotations = annotations }
	}
	task, err := with(t, allowed, annotated(map[string]string{
		"example.com/away-from": other + ", " + other, "example.com/query": `["="]`, "example.com/not-allowed": "x",
	}))
	want := map[string]any{"same_host": []any{"a"}, "different_host": []string{other, other}, "query": `["="]`}
	if diff := cmp.Diff(want, task.Volume.Hints); err != nil || diff != "" {
		t.Error(err, diff)
	}
	_, err = with(t, allowed, annotated(map[string]string{"example.com/away-from": "../x"}))
	if f, ok := errors.AsType[*input.Error](err); !ok || f.Code != contract.ExitBadRequest || !strings.Contains(err.Error(), "must be the ID of a volume") {
		t.Errorf("got %v", err)
	}
	if task, err = with(t, nil, annotated(map[string]string{"example.com/away-from": other})); err != nil || task.Volume.Hints != nil {
		t.Errorf("hints %v, %v", task.Volume.Hints, err)
	}
}

// A storage is sent what only it asks for.
func TestConnectorHasFurtherKeys(t *testing.T) {
	task, err := with(t, map[string]string{"connector": `{"uuid": "u", "system uuid": "s", "found_dsc": true}`}, nil)
	want := map[string]any{"uuid": "u", "system uuid": "s", "found_dsc": true}
	if diff := cmp.Diff(want, task.Volume.Access.Client.Extra); err != nil || diff != "" {
		t.Error(err, diff)
	}
}

// The nodes of two clusters are two hosts to an array. Names of the class's own stay as they are.
func TestNodesPresentThemselvesByTheirCluster(t *testing.T) {
	const cluster = "2b7f5c1e-9a44-4d0e-8f5b-6a1c0b9d3e77"
	for name, tc := range map[string]struct {
		uid             string
		properties      map[string]string
		initiator, host string
	}{
		"the cluster is known":     {cluster, nil, "iqn.2026-11.io.flex-provisioner:" + cluster, "flex-" + cluster},
		"the cluster is not known": {"", nil, input.SharedInitiator, "flex-provisioner"},
		"the class has its own": {
			cluster, map[string]string{"initiator": "iqn.2020-01.org.example:all", "host": "k8s"}, "iqn.2020-01.org.example:all", "k8s",
		},
	} {
		t.Run(name, func(t *testing.T) {
			task, err := with(t, tc.properties, func(r *contract.Requests, _ fstest.MapFS) { r.Items[0].ClusterUID = tc.uid })
			if client := task.Volume.Access.Client; err != nil || client.Initiator != tc.initiator || client.Host != tc.host {
				t.Errorf("%+v, %v", client, err)
			}
			if task.Initiator != tc.initiator {
				t.Errorf("nodes log in as %s, the volume is exported to %s", task.Initiator, tc.initiator)
			}
		})
	}
}

// The name that a volume is exported to over NVMe-oF is the one that nodes connect by, with the ID
// that belongs to it.
func TestNVMeNameOfTheConfigIsTheOneThatNodesConnectBy(t *testing.T) {
	const id = "5f7a1a52-7a4c-4c51-9d07-0d0c4b1f9b11"
	for name, tc := range map[string]struct{ nqn, hostID, want string }{
		"the name holds the ID": {"nqn.2014-08.org.nvmexpress:uuid:" + id, "", id},
		"the ID is given":       {"nqn.2014-08.com.example:nodes", id, id},
		"no ID":                 {"nqn.2014-08.com.example:nodes", "", ""},
		"neither":               {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			task, err := with(t, map[string]string{"nqn": tc.nqn, "nvme-hostid": tc.hostID}, nil)
			if err != nil {
				t.Fatal(err)
			}
			client := task.Volume.Access.Client
			if task.Host != (mapper.NVMeHost{NQN: tc.nqn, ID: tc.want}) || client.NQN != tc.nqn || client.HostID != tc.want {
				t.Errorf("nodes connect by %+v, the volume is exported to %+v", task.Host, client)
			}
		})
	}
}

// Names, metadata, hints and zone are read, and a claim's text in them is made harmless.
func TestPropertiesDescribeTheVolume(t *testing.T) {
	task, err := with(t, map[string]string{
		"volume-name": " {cluster}-{claim-namespace}-{claim-name} ", "volume-metadata": "team=blue, from={storage-class}",
		"scheduler-hints": `{"same_host": ["a"], "query": "[\"=\", \"$free\", 1]"}`, "availability": "selected-node",
		"snapshot": "s-1", "adopt": "shop/data: v-1",
	}, func(r *contract.Requests, _ fstest.MapFS) {
		r.Items[0].SelectedZone, r.Items[0].Name, r.Items[0].ClusterUID = "east", `da"ta`, "c-1"
	})
	if err != nil {
		t.Fatal(err)
	}
	v := task.Volume
	if v.ClusterUID != "c-1" || v.Name != "it_s one-shop-da_ta" || v.Zone != "" || !slices.Equal(v.Zones, []string{"east"}) || !task.InZone || v.Source.SnapshotID != "s-1" || v.Adopt != "" {
		t.Errorf("%+v", v)
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
			"ceph-user": "u", "ceph-secret": "ns/name", "flex-driver": "d",
		}, func(_ *contract.Requests, f fstest.MapFS) { f["secret/ceph.key"] = &fstest.MapFile{Data: []byte(form)} })
		if err != nil {
			t.Fatal(err)
		}
		want := mapper.Options{
			Kind: "rbd", FSType: "xfs", FlexDriver: "d",
			Ceph: mapper.Ceph{
				ClusterID: "c", ImageFeatures: "layering", Mounter: "rbd-nbd", User: "u",
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
		"attach API":        {"attach-api", "old", `"old" must be one of`},
		"multipath":         {"multipath", "perhaps", "must be true or false"},
		"initiator":         {"initiator", "nodes", "must be an iqn, eui or naa name"},
		"address":           {"ip", "here", "must be an IP address"},
		"port name":         {"wwpns", "5001", "16 hexadecimal digits"},
		"node name":         {"wwnns", "x", "16 hexadecimal digits"},
		"no zone":           {"availability", "selected-node", "volumeBindingMode WaitForFirstConsumer"},
		"nqn":               {"nqn", "x", "property nqn"},
		"connector":         {"connector", "[1]", "property connector: must be a JSON object"},
		"connector's host":  {"connector", `{"host": "x"}`, `"host" must not be set here`},
		"NVMe host":         {"nvme-hostid", "x", "property nvme-hostid"},
		"hints":             {"scheduler-hints", "[1]", "must be a JSON object"},
		"placeholder":       {"volume-name", "{user}", "placeholder {user} is unknown"},
		"metadata":          {"volume-metadata", "team", "must have the form KEY=VALUE"},
		"metadata of ours":  {"volume-metadata", "flex-provisioner.io/claim-uid=x", "a key that this image does not use"},
		"Secret":            {"ceph-secret", "name", "must have the form NAMESPACE/NAME"},
		"mounter":           {"mounter", "fuse", `"fuse" must be one of`},
		"initiator written": {"write-initiator", "x", "must be true or false"},
		"two file systems":  {"csi.storage.k8s.io/fstype", "ext4", `property fsType is "xfs", but csi.storage.k8s.io/fstype is "ext4"`},
		"multiattach":       {"multiattach", "x", "must be true or false"},
		"hint of a claim":   {"hint-annotations", "same_host", "must have the form HINT=ANNOTATION"},
		"shared LUN":        {"shared-lun", "perhaps", "property shared-lun"},
		"portal":            {"portals", "storage.example", `"storage.example" must be an address, or a network`},
		"a file elsewhere":  {"cloud-config", "../../etc/passwd", "is missing"},
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

// The parameter chose the source of a new PV, of which one is left. With a floating tag the revisions
// of earlier volumes are read by this image, which once refused to delete those volumes.
func TestAParameterOfFormerImagesKeepsNoVolumeFromItsDeletion(t *testing.T) {
	for value, ok := range map[string]bool{"ceph-csi": true, "": true, "native": false} {
		for _, verb := range contract.Verbs() {
			in := sources(t, func(r *contract.Requests, _ fstest.MapFS) {
				r.Verb, r.Items[0].Properties["RBD-source"] = verb, value
			})
			in.Verb = verb
			_, err := read(in)
			if good := ok || verb != contract.Provision; (err == nil) != good {
				t.Errorf("%s with %q: %v", verb, value, err)
			}
		}
	}
}

// A list is about the class only.
func TestListNeedsNoClaim(t *testing.T) {
	in := sources(t, func(r *contract.Requests, files fstest.MapFS) {
		r.Verb, r.Items = contract.List, nil
		delete(files, "pv.json")
	})
	in.Verb = contract.List
	if task, err := read(in); err != nil || !task.Login.IsNoauth() {
		t.Errorf("%+v, %v", task, err)
	}
}
