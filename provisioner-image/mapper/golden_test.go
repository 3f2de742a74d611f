package mapper_test

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/mapper"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/pv"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// go test ./provisioner-image/mapper -update rewrites the golden files.
var update = flag.Bool("update", false, "write the golden files")

const volumeID = "6feffd2e-407e-4ab6-b316-4cc0218d4662"

// golden is one PV: the captured connection that it comes from, changes to it, and what is wanted.
// The passwords and keys in it and its Secret are made up or of a lab that was deleted, and open nothing.
type golden struct {
	from   string
	change map[string]any
	edit   func(*mapper.Want)
}

func ceph(w *mapper.Want) {
	w.Ceph = mapper.Ceph{ClusterID: "b9127830-b0cc-4e34-aa47-9d1a2e9949a8", Key: "QVFCa2V5"}
}

func modes(all ...corev1.PersistentVolumeAccessMode) func(*mapper.Want) {
	return func(w *mapper.Want) { w.AccessModes = all }
}

// readers makes of a claim one of many nodes that read what is there already.
func readers(w *mapper.Want) {
	w.Filled, w.AccessModes = true, []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}
}

// goldens are PVs that an API server has to accept, by the names of their files. Each PV has its
// own name, so that all of them can be created together.
var goldens = map[string]golden{
	"iscsi":             {from: "iscsi"},
	"iscsi-block":       {from: "iscsi", edit: func(w *mapper.Want) { w.VolumeMode = corev1.PersistentVolumeBlock }},
	"iscsi-two-portals": {from: "iscsi-two-portals", edit: func(w *mapper.Want) { w.VolumeID = "906d8812-6763-472a-a611-475d00ffb64b" }},
	"iscsi-shared-target": {
		from: "iscsi", change: map[string]any{"target_iqn": "iqn.2010-06.com.purestorage:flasharray.1234", "target_lun": 7, "auth_method": nil},
		edit: func(w *mapper.Want) { w.Initiator = "" },
	},
	"iscsi-ipv6-without-brackets": {
		from: "iscsi", change: map[string]any{"target_portal": "2001:db8::1:3260"},
		edit: func(w *mapper.Want) { w.Initiator = "" },
	},
	"iscsi-discovery-chap": {from: "iscsi", change: map[string]any{
		"discovery_auth_method": "CHAP", "discovery_auth_username": "finder", "discovery_auth_password": "sesame-open-it",
	}},
	"iscsi-no-chap": {from: "iscsi", change: map[string]any{"auth_method": nil}},
	"iscsi-ipv6": {
		from: "iscsi", change: map[string]any{"target_portal": "[2001:db8:1234:5678:9abc:def0:1234:5678]:3260"},
		edit: func(w *mapper.Want) { w.Initiator = "" },
	},
	"iscsi-readers":          {from: "iscsi", edit: func(w *mapper.Want) { readers(w); w.Initiator = "" }},
	"iscsi-marked-read-only": {from: "iscsi", change: map[string]any{"access_mode": "ro"}, edit: func(w *mapper.Want) { w.FSType = "ext4" }},
	"iscsi-one-pod":          {from: "iscsi", edit: modes(corev1.ReadWriteOncePod)},
	"fibre-channel":          {from: "fibre-channel", change: map[string]any{"wwn": nil}},
	"fibre-channel-one-wwn":  {from: "fibre-channel", change: map[string]any{"target_wwn": "50:0a:09:81:89:1b:8d:c5", "target_wwns": nil, "target_luns": nil, "wwn": nil}},
	"fibre-channel-wwid":     {from: "fibre-channel"},
	"fibre-channel-readers":  {from: "fibre-channel", edit: readers},
	"rbd":                    {from: "rbd", edit: ceph},
	"rbd-readers":            {from: "rbd", edit: func(w *mapper.Want) { ceph(w); readers(w) }},
	"rbd-readers-block": {from: "rbd", edit: func(w *mapper.Want) {
		ceph(w)
		readers(w)
		w.VolumeMode = corev1.PersistentVolumeBlock
	}},
	"rbd-shared-block": {from: "rbd", edit: func(w *mapper.Want) {
		ceph(w)
		w.VolumeMode, w.AccessModes = corev1.PersistentVolumeBlock, []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
		w.Ceph.ImageFeatures, w.Ceph.Mounter = "layering,exclusive-lock", "rbd-nbd"
	}},
	"rbd-own-secret": {from: "rbd", edit: func(w *mapper.Want) {
		ceph(w)
		w.Ceph.Key, w.Ceph.Secret = "", corev1.SecretReference{Namespace: "ceph-csi", Name: "csi-rbd-secret"}
	}},
	"nvmeof": {from: "nvmeof", edit: subsystemsVolume},
	"nvmeof-host": {from: "nvmeof", edit: func(w *mapper.Want) {
		subsystemsVolume(w)
		w.Host = mapper.NVMeHost{NQN: "nqn.2014-08.org.nvmexpress:uuid:5f7a1a52-7a4c-4c51-9d07-0d0c4b1f9b11", ID: "5f7a1a52-7a4c-4c51-9d07-0d0c4b1f9b11"}
	}},
	"nvmeof-nguid": {
		from: "nvmeof", change: map[string]any{"volume_nguid": "68CCF098-0012-3456-789A-BCDEF0123456", "target_port": 4420},
		edit: subsystemsVolume,
	},
	"nvmeof-own-uuid": {from: "nvmeof", change: map[string]any{
		"nqn": "nqn.2010-06.com.example:aaaabbbb-3333-4444-5555-666677778888", "vol_uuid": "AAAABBBB-3333-4444-5555-666677778888",
	}},
	"nvmeof-marked-read-only": {from: "nvmeof", change: map[string]any{"access_mode": "ro"}, edit: subsystemsVolume},
	"nvmeof-two-ports":        {from: "nvmeof", change: nvmeofV2, edit: subsystemsVolume},
	"flex-volume":             {from: "nfs", change: map[string]any{"options": nil}, edit: func(w *mapper.Want) { w.FlexDriver = "example.com/nfs-loop" }},
	"flex-volume-iscsi":       {from: "iscsi", edit: func(w *mapper.Want) { w.Kind, w.FlexDriver = "iscsi", "flex-provisioner.io/iscsi" }},
	"flex-volume-secret": {
		from: "nfs", change: map[string]any{"password": "hush", "tries": 3},
		edit: func(w *mapper.Want) { w.FlexDriver = "example.com/nfs-loop" },
	},
}

// subsystemsVolume is the volume of the captured subsystem.
func subsystemsVolume(w *mapper.Want) { w.VolumeID = "0272bd1b-ccfa-4d86-aa9c-5b61778c9bad" }

// nvmeofV2 is the second form of an NVMe-oF connection, of a target with a subsystem for each
// volume.
var nvmeofV2 = map[string]any{
	"target_portal": nil, "target_port": nil, "nqn": nil, "transport_type": nil, "ns_id": nil,
	"target_nqn": "nqn.2014-08.org.nvmexpress:uuid-0272bd1b-ccfa-4d86-aa9c-5b61778c9bad", "discard": true,
	"portals":      [][]any{{"192.0.2.9", "4420", "fc"}, {"192.0.2.10", "4420", "tcp"}, {"192.0.2.11", 4420, "RoCEv2"}},
	"volume_nguid": "00b9c8d7e6f5a40124a9370012345678",
}

// The golden files hold the PV and the Secret of every mapper. test/e2e creates them on a real API
// server.
func TestMapMatchesTheGoldenFiles(t *testing.T) {
	for name, g := range goldens {
		t.Run(name, func(t *testing.T) {
			w := want()
			uid := "8d5a6f3c-1f0e-4c11-9a55-" + (strings.Repeat("0", 12) + digits(name))[len(digits(name)):]
			w.PVName, w.VolumeID = contract.PVName(uid), volumeID
			w.SecretRef = corev1.SecretReference{Namespace: "flex-provisioner", Name: w.PVName}
			if g.edit != nil {
				g.edit(&w)
			}
			if w.FlexDriver == "" {
				w.MountOptions = []string{"noatime"}
			}
			m, err := mapper.Map(capture(t, g.from, g.change), w)
			if err != nil {
				t.Fatal(err)
			}
			complete, err := pv.Build(frame(uid, w), m.Source, 1, record(m, w))
			if err != nil {
				t.Fatal(err)
			}
			complete.Spec.MountOptions = m.MountOptions
			compare(t, name+".pv.yaml", complete)
			if m.Secret != nil {
				m.Secret.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
				compare(t, name+".secret.yaml", m.Secret)
			}
		})
	}
}

// digits returns a number that differs between goldens.
func digits(name string) string {
	sum := 0
	for _, r := range name {
		sum = (sum*31 + int(r)) % 1_000_000_000
	}
	text, _ := json.Marshal(sum) // a number: cannot fail
	return string(text)
}

// capture returns a connection that a real Cinder sent, with some of the details changed. The value
// nil removes one.
func capture(t *testing.T, name string, change map[string]any) volume.Connection {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "connections", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	var info struct {
		Kind string         `json:"driver_volume_type"`
		Data map[string]any `json:"data"`
	}
	if err := json.Unmarshal(data, &info); err != nil {
		t.Fatal(err)
	}
	maps.Copy(info.Data, change)
	maps.DeleteFunc(info.Data, func(key string, value any) bool { return value == nil && change[key] == nil && has(change, key) })
	details, err := json.Marshal(info.Data)
	if err != nil {
		t.Fatal(err)
	}
	return volume.NewConnection(info.Kind, details)
}

func has(m map[string]any, key string) bool { _, ok := m[key]; return ok }

// frame is the skeleton that the dispatcher makes.
func frame(uid string, w mapper.Want) *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
		ObjectMeta: metav1.ObjectMeta{
			Name: w.PVName,
			Annotations: map[string]string{
				contract.AnnProvisionedBy: contract.ProvisionerName,
				contract.AnnClaimUID:      uid,
			},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes:                   w.AccessModes,
			VolumeMode:                    &w.VolumeMode,
			StorageClassName:              "golden",
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			MountOptions:                  w.MountOptions,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: "default", Name: "golden", UID: types.UID(uid),
			},
		},
	}
}

func record(m mapper.Mapping, w mapper.Want) pv.Record {
	r := pv.Record{VolumeID: w.VolumeID, Access: volume.Access{
		Method: "attachments", ID: "0e48500e-dd3d-4966-9d5e-ae5983d969cb",
		Client: volume.Client{Initiator: w.Initiator, Host: "flex-provisioner"},
	}}
	if m.Secret != nil {
		r.Secret = w.SecretRef
	}
	return r
}

func compare(t *testing.T, name string, object any) {
	t.Helper()
	got, err := yaml.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (write it anew with -update): %s", path, diff)
	}
}

// A golden file without a golden would not be compared.
func TestEveryGoldenFileIsCompared(t *testing.T) {
	files, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		if _, ok := goldens[name]; !ok {
			t.Errorf("%s belongs to no golden", file)
		}
	}
}
