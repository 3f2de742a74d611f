package pvs_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

func TestPVNamesAVolumeByTheStoragesOwnName(t *testing.T) {
	t.Parallel()
	const id = "5d1f0b6e-9a57-4c8e-8f4e-0b1c2d3e4f50"
	for name, test := range map[string]struct {
		source corev1.PersistentVolumeSource
		volume string
		want   bool
	}{
		"part of an iSCSI name": {corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{IQN: "iqn.2010-10.org.openstack:volume-" + id}}, id, true},
		"a CSI handle":          {corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{VolumeHandle: id}}, id, true},
		"in other letters":      {corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{VolumeHandle: "5D1F0B6E-9a57-4c8e-8f4e-0b1c2d3e4f50"}}, id, true},
		"a path":                {corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Path: "/export/pvc-" + id}}, "pvc-" + id, true},
		"another volume":        {corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Path: "/export/volume-10"}}, "volume-1", false},
		"no name of length":     {corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Path: "/export/7"}}, "7", false},
		"no source":             {corev1.PersistentVolumeSource{}, id, false},
	} {
		if got := pvs.NamesVolume(test.volume)(&corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: test.source}}); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
