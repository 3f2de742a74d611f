package pvs

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
)

// NameOnNode returns the name that the status of a node has for a PV's volume while it is attached
// there, in volumesInUse and in volumesAttached. It is made of the volume plugin's name, and of
// what that plugin calls the volume. It returns nothing for a volume that is never attached, such
// as NFS, hostPath and local: no node reports those.
func NameOnNode(pv *corev1.PersistentVolume) corev1.UniqueVolumeName {
	plugin, name := "", ""
	switch s := pv.Spec.PersistentVolumeSource; {
	case s.CSI != nil:
		plugin, name = "kubernetes.io/csi", s.CSI.Driver+"^"+s.CSI.VolumeHandle
	case s.ISCSI != nil:
		plugin, name = "kubernetes.io/iscsi", fmt.Sprintf("%s:%s:%d", s.ISCSI.TargetPortal, s.ISCSI.IQN, s.ISCSI.Lun)
	case s.FC != nil:
		plugin, name = "kubernetes.io/fc", nameOfFC(s.FC)
	case s.FlexVolume != nil:
		plugin, name = s.FlexVolume.Driver, pv.Name
	}
	if name == "" {
		return ""
	}
	return corev1.UniqueVolumeName(plugin + "/" + name)
}

// nameOfFC formats lists as the plugin does, in brackets.
func nameOfFC(s *corev1.FCVolumeSource) string {
	switch {
	case len(s.TargetWWNs) > 0 && s.Lun != nil:
		return fmt.Sprintf("%v:%d", s.TargetWWNs, *s.Lun)
	case len(s.WWIDs) > 0:
		return fmt.Sprint(s.WWIDs)
	default:
		return ""
	}
}
