package mounts

// readers says who reads each field of a source that a PV of ours has, with the file and the
// function: of Kubernetes the version of test/cluster/go.mod, of csi-driver-nvmf 99b30cc, of
// ceph-csi 52fcb7b. A field that is not here has no reader, and goes from the PV.
var readers = map[string]string{
	"iscsi.targetPortal":        "pkg/volume/iscsi/iscsi.go getISCSITargetInfo",
	"iscsi.portals":             "pkg/volume/iscsi/iscsi.go getISCSITargetInfo",
	"iscsi.iqn":                 "pkg/volume/iscsi/iscsi.go getISCSITargetInfo",
	"iscsi.lun":                 "pkg/volume/iscsi/iscsi.go getISCSITargetInfo",
	"iscsi.fsType":              "pkg/volume/iscsi/iscsi.go getISCSIVolumeInfo",
	"iscsi.initiatorName":       "pkg/volume/iscsi/iscsi.go getISCSIInitiatorInfo",
	"iscsi.chapAuthSession":     "pkg/volume/iscsi/iscsi_util.go updateISCSINode",
	"iscsi.chapAuthDiscovery":   "pkg/volume/iscsi/iscsi_util.go updateISCSIDiscoverydb",
	"iscsi.secretRef.name":      "pkg/volume/iscsi/iscsi.go getISCSISecretNameAndNamespace",
	"iscsi.secretRef.namespace": "pkg/volume/iscsi/iscsi.go getISCSISecretNameAndNamespace",

	"fc.targetWWNs": "pkg/volume/fc/fc.go getWwnsLunWwids",
	"fc.lun":        "pkg/volume/fc/fc.go getWwnsLunWwids",
	"fc.wwids":      "pkg/volume/fc/fc.go getWwnsLunWwids",
	"fc.fsType":     "pkg/volume/fc/attacher.go MountDevice",

	"flexVolume.driver":              "pkg/volume/flexvolume/plugin.go CanSupport",
	"flexVolume.fsType":              "pkg/volume/flexvolume/driver-call.go NewOptionsForDriver",
	"flexVolume.options":             "pkg/volume/flexvolume/driver-call.go NewOptionsForDriver",
	"flexVolume.secretRef.name":      "pkg/volume/flexvolume/util.go addSecretsToOptions",
	"flexVolume.secretRef.namespace": "pkg/volume/flexvolume/util.go addSecretsToOptions",

	"nfs.server": "pkg/volume/nfs/nfs.go newMounterInternal",
	"nfs.path":   "pkg/volume/nfs/nfs.go newMounterInternal",
	"local.path": "pkg/volume/local/local.go NewMounter",

	"csi.driver":                       "pkg/volume/csi/csi_attacher.go MountDevice",
	"csi.volumeHandle":                 "pkg/volume/csi/csi_attacher.go MountDevice",
	"csi.fsType":                       "pkg/volume/csi/csi_attacher.go MountDevice",
	"csi.nodeStageSecretRef.name":      "pkg/volume/csi/csi_attacher.go MountDevice",
	"csi.nodeStageSecretRef.namespace": "pkg/volume/csi/csi_attacher.go MountDevice",

	"rbd.csi.ceph.com clusterID":     "ceph-csi internal/rbd/rbd_util.go genVolFromVolumeOptions",
	"rbd.csi.ceph.com pool":          "ceph-csi internal/rbd/rbd_util.go genVolFromVolumeOptions",
	"rbd.csi.ceph.com imageFeatures": "ceph-csi internal/rbd/rbd_util.go genVolFromVolumeOptions",
	"rbd.csi.ceph.com mounter":       "ceph-csi internal/rbd/rbd_util.go genVolFromVolumeOptions",
	"rbd.csi.ceph.com staticVolume":  "ceph-csi internal/rbd/nodeserver.go populateRbdVol",

	"csi.nvmf.com targetTrAddr": "csi-driver-nvmf pkg/nvmf/nvmf.go getNVMfDiskInfo",
	"csi.nvmf.com targetTrPort": "csi-driver-nvmf pkg/nvmf/nvmf.go getNVMfDiskInfo",
	"csi.nvmf.com targetTrType": "csi-driver-nvmf pkg/nvmf/nvmf.go getNVMfDiskInfo",
	"csi.nvmf.com nqn":          "csi-driver-nvmf pkg/nvmf/nvmf.go getNVMfDiskInfo",
	"csi.nvmf.com hostNqn":      "csi-driver-nvmf pkg/nvmf/nvmf.go getNVMfDiskInfo",
	"csi.nvmf.com hostId":       "csi-driver-nvmf pkg/nvmf/nvmf.go getNVMfDiskInfo",
	"csi.nvmf.com deviceUUID":   "csi-driver-nvmf pkg/nvmf/nvmf.go getNVMfDiskInfo",
	"csi.nvmf.com deviceID":     "csi-driver-nvmf pkg/nvmf/nvmf.go getNVMfDiskInfo",
}
