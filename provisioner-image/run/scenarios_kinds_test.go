package run_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// A claim of each kind of connection is provisioned and deleted, with every method of exporting a
// volume.
func TestEveryKindOfConnectionIsProvisionedAndDeleted(t *testing.T) {
	tests := map[string]struct {
		properties map[string]string
		env        string
		source     string
		secret     string
	}{
		"fibre_channel": {
			map[string]string{"type": cindertest.TypeFibre, "wwpns": "50:01:43:80:18:6b:3f:64,50014380186B3F66", "wwnns": "50014380186b3f65", "shared-lun": "false"},
			"", "3624a9370", "",
		},
		"rbd": {
			map[string]string{"type": cindertest.TypeRBD, "cluster-id": "b912", "connection": "rbd"}, "QVFCa2V5", "rbd.csi.ceph.com", "userKey",
		},
		"nvmeof": {
			map[string]string{"type": cindertest.TypeNVMe, "nqn": "nqn.2014-08.org.nvmexpress:uuid:nodes"}, "", "csi.nvmf.com", "",
		},
		"by a FlexVolume driver": {
			map[string]string{"type": cindertest.TypeNFS, "flex-driver": "example.com/loop", "connection": "nfs"}, "", "example.com/loop", "",
		},
	}
	for name, tc := range tests {
		for _, api := range []volume.Method{cinder.Attachments, cinder.Reserve} {
			t.Run(name+", "+string(api), func(t *testing.T) {
				w := newWorld(t)
				w.api, w.also, w.cephKey = api, tc.properties, tc.env
				w.wantCode(t, w.provision(t), contract.ExitDone)
				if got := named(w.pvs(t)[0].Spec.PersistentVolumeSource); got != tc.source {
					t.Errorf("the source names %q, want %q", got, tc.source)
				}
				for _, s := range w.secrets(t) {
					if string(s.Data[tc.secret]) != tc.env {
						t.Errorf("the Secret holds %d keys", len(s.Data))
					}
				}
				if (len(w.secrets(t)) == 1) != (tc.secret != "") {
					t.Errorf("%d Secrets", len(w.secrets(t)))
				}
				w.deleteTwice(t)
				none(t, w)
			})
		}
	}
}

// named returns what differs between the sources.
func named(s corev1.PersistentVolumeSource) string {
	switch {
	case s.FC != nil:
		return s.FC.WWIDs[0][:len("3624a9370")] // how the fake's names of disks begin
	case s.CSI != nil:
		return s.CSI.Driver
	case s.FlexVolume != nil:
		return s.FlexVolume.Driver
	default:
		return ""
	}
}

// The kubelet mounts no FlexVolume with mount options, so nothing is made for a class that has
// both.
func TestMountOptionsOfAFlexVolumeAreRefusedBeforeAVolumeIsMade(t *testing.T) {
	w := newWorld(t)
	w.also = map[string]string{"type": cindertest.TypeNFS, "flex-driver": "example.com/loop", "connection": "nfs"}
	object := skeleton()
	object.Spec.MountOptions = []string{"noatime"}
	w.wantCode(t, w.run(t, w.request(contract.Provision, nil), object), contract.ExitConfig)
	none(t, w)
}
