//go:build e2e

package e2e

import corev1 "k8s.io/api/core/v1"

// The volume sources that attacks write on PVs.

func aDirectory(path string, kind corev1.HostPathType) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: path, Type: &kind}}
}

// aDisk is a disk that a kubelet mounts with a file system, aDiskNamed one that it finds by its
// identifier.
func aDisk(fsType string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{TargetPortal: "192.0.2.10:3260", IQN: "iqn.2010-10.org.openstack:a", FSType: fsType}}
}

func aDiskNamed(wwid string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{FC: &corev1.FCVolumeSource{WWIDs: []string{wwid}}}
}

// aTarget is a disk of iSCSI with an interface, portsOf one of Fibre Channel by the names of its
// ports.
func aTarget(iface string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{TargetPortal: "192.0.2.10:3260", IQN: "iqn.2010-10.org.openstack:a", ISCSIInterface: iface}}
}

func portsOf(port string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{FC: &corev1.FCVolumeSource{TargetWWNs: []string{port}, Lun: new(int32)}}
}

// anImage is an image of Ceph, as kubelets mounted it up to Kubernetes 1.30.
func anImage() corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{RBD: &corev1.RBDPersistentVolumeSource{CephMonitors: []string{"192.0.2.10:6789"}, RBDImage: "volume-" + attackUID}}
}

// migrated is a source that Kubernetes hands to a CSI driver with every text that it has.
func migrated() corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{Cinder: &corev1.CinderPersistentVolumeSource{VolumeID: attackUID, FSType: "overlay"}}
}

// chapFrom is a disk whose login is in a Secret.
func chapFrom(namespace, name string) corev1.PersistentVolumeSource {
	source := aDisk("ext4")
	source.ISCSI.SecretRef = &corev1.SecretReference{Namespace: namespace, Name: name}
	return source
}

// publishedWith is a volume of any CSI driver, which gets a Secret.
func publishedWith(namespace, name string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
		Driver: "any.example.com", VolumeHandle: "a", NodePublishSecretRef: &corev1.SecretReference{Namespace: namespace, Name: name},
	}}
}

func exportOf(server string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: server, Path: "/a"}}
}

func pathOf(path string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "10.250.0.9", Path: path}}
}
