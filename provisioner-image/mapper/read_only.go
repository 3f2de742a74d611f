package mapper

import (
	"cmp"
	"slices"
	"strings"
)

// The kubelet and the CSI drivers read neither readOnly of a PV's source nor the access modes (but
// ceph-csi, ReadOnlyMany): a pod says readOnly, or the node mounts to write. So a volume that is
// only to be read has mount options for it. "ro" is an element of its own: inside of another one it
// is not seen, and a disk without a known file system is formatted (formatAndMountSensitive in
// k8s.io/mount-utils). test/cluster/mounts runs the kubelet's plugins with them.

// noReplay are the options by which a file system does not replay its journal, as it does even if it
// is mounted to read: all nodes would write to one disk, and of a device that cannot be written the
// mount fails. A clone of a volume in use has a journal to replay.
var noReplay = map[string]string{"ext3": "noload", "ext4": "noload", "xfs": "norecovery", "btrfs": "norecovery"}

// mountOptions returns the options of the class, and with them those that keep a node from writing
// to a volume that is only to be read. Of a volume with content that is xfs a node may have the one
// that it was cloned from, with the same UUID, which the kernel mounts only with "nouuid".
func (w Want) mountOptions() []string {
	options := slices.Clone(w.MountOptions)
	if w.IsBlock() {
		return options
	}
	var needed []string
	if w.Filled && w.FSType == "xfs" {
		needed = append(needed, "nouuid")
	}
	if w.ReadOnly {
		needed = append(needed, "ro", noReplay[cmp.Or(w.FSType, "ext4")])
	}
	for _, one := range needed {
		if one != "" && !slices.Contains(options, one) {
			options = append(options, one)
		}
	}
	return options
}

// What the storage says of a volume that it marks as read-only, and what makes it writable.
const (
	markedReadOnly = "the storage marks the volume as read-only (access_mode ro), and "
	setReadWrite   = ". Remedy: an administrator lets clients write to it (openstack volume set --read-write VOLUME)"
)

// checkMarked refuses a volume that the storage marks as read-only if nothing keeps a node from
// writing to it. Of a claim that only reads, Check has refused that.
func (w Want) checkMarked() error {
	if w.IsBlock() && !w.onlyReads() {
		return &UnsupportedError{Claim: true, Reason: markedReadOnly + "pods could write to its raw device: request volumeMode Filesystem" + setReadWrite}
	}
	return w.checkNoWrite()
}

// checkNoWrite refuses the mount option "rw" of the class. The kubelet sorts options, so it is the
// last one, which counts (JoinMountOptions in pkg/volume/util).
func (w Want) checkNoWrite() error {
	for _, option := range w.MountOptions {
		if slices.Contains(strings.Split(option, ","), "rw") {
			return unsupported("the class has the mount option rw, and nodes may only read this volume: remove rw from mountOptions of the class")
		}
	}
	return nil
}
