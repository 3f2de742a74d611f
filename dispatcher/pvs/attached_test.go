package pvs_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// The names are those that Kubernetes 1.36 gives: GetUniqueVolumeNameFromSpec in pkg/volume/util,
// GetVolumeName of each plugin.
func TestNameOnNodeIsThatOfTheVolumePlugin(t *testing.T) {
	for name, test := range map[string]struct {
		source corev1.PersistentVolumeSource
		want   corev1.UniqueVolumeName
	}{
		"csi":   {corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "rbd.csi.ceph.com", VolumeHandle: "0001-a"}}, "kubernetes.io/csi/rbd.csi.ceph.com^0001-a"},
		"iscsi": {corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{TargetPortal: "10.0.0.1:3260", IQN: "iqn.2010-10.org.openstack:v", Lun: 1}}, "kubernetes.io/iscsi/10.0.0.1:3260:iqn.2010-10.org.openstack:v:1"},
		"fc with a LUN": {
			corev1.PersistentVolumeSource{FC: &corev1.FCVolumeSource{TargetWWNs: []string{"50060e801049cfd1", "50060e801049cfd2"}, Lun: new(int32(2)), WWIDs: []string{"w"}}},
			"kubernetes.io/fc/[50060e801049cfd1 50060e801049cfd2]:2",
		},
		"fc with WWIDs": {corev1.PersistentVolumeSource{FC: &corev1.FCVolumeSource{WWIDs: []string{"3600"}}}, "kubernetes.io/fc/[3600]"},
		"fc with none":  {corev1.PersistentVolumeSource{FC: &corev1.FCVolumeSource{}}, ""},
		"flexVolume":    {corev1.PersistentVolumeSource{FlexVolume: &corev1.FlexPersistentVolumeSource{Driver: "openstack.org/cinder"}}, "openstack.org/cinder/pvc-" + fixture.UID},
		"nfs":           {corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "a", Path: "/b"}}, ""},
		"local":         {corev1.PersistentVolumeSource{Local: &corev1.LocalVolumeSource{Path: "/b"}}, ""},
		"hostPath":      {corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/b"}}, ""},
	} {
		pv := fixture.PV(t)
		pv.Name, pv.Spec.PersistentVolumeSource = "pvc-"+fixture.UID, test.source
		if got := pvs.NameOnNode(pv); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
