package mapper

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
)

// Options are what class and config say about the source.
type Options struct {
	// Kind is the kind of connection of all the class's volumes, "" where the class does not say it.
	Kind   string
	FSType string
	// Initiator is the name that every node logs in with, "" where each has its own.
	Initiator string
	// FlexDriver mounts the kinds that nothing else can.
	FlexDriver string
	Ceph       Ceph
}

// Ceph is what a node needs for an rbd image and Cinder does not know.
type Ceph struct {
	// ClusterID is the cluster's name in the configuration of ceph-csi.
	ClusterID string
	// ImageFeatures and Mounter are ceph-csi's.
	ImageFeatures, Mounter string
	// Native asks for Kubernetes' own rbd source, which nodes newer than 1.30 cannot mount.
	Native bool
	// Secret exists already and holds the key; else Key is written to a Secret of the PV's own.
	Secret corev1.SecretReference
	Key    credentials.Secret
	// User is the cephx user, if it is not the one that Cinder names.
	User string
}

// Want is what claim, class and config ask of the source.
type Want struct {
	Options
	PVName      string
	VolumeID    string
	AccessModes []corev1.PersistentVolumeAccessMode
	VolumeMode  corev1.PersistentVolumeMode
	// Filled tells that the volume has content from the beginning: many nodes can only read what
	// somebody wrote before.
	Filled bool
	// ReadOnly is how the volume must be mounted.
	ReadOnly bool
	// SecretRef is where the source's own Secret will be, if it needs one.
	SecretRef corev1.SecretReference
}

// Block tells whether the claim wants a raw device.
func (w Want) Block() bool { return w.VolumeMode == corev1.PersistentVolumeBlock }

// fsType is empty for a raw device.
func (w Want) fsType() string {
	if w.Block() {
		return ""
	}
	return w.FSType
}

func (w Want) onlyReads() bool {
	return len(w.AccessModes) > 0 && !slices.ContainsFunc(w.AccessModes,
		func(m corev1.PersistentVolumeAccessMode) bool { return m != corev1.ReadOnlyMany })
}

// promises is what a kind of source can keep, beside one node that reads and writes.
type promises struct {
	name string
	// manyRead: many nodes can read at a time.
	manyRead bool
	// manyWrite: many nodes can write at a time, to a raw device.
	manyWrite bool
}

// check refuses the modes that cannot be kept, with the modes that can.
func (p promises) check(w Want) error {
	for _, mode := range w.AccessModes {
		if reason := p.against(mode, w); reason != "" {
			return &UnfitError{Claim: true, Reason: fmt.Sprintf("access mode %s is not possible %s", mode, reason)}
		}
	}
	return nil
}

func (p promises) against(mode corev1.PersistentVolumeAccessMode, w Want) string {
	const ask = ": ask for ReadWriteOnce or ReadWriteOncePod"
	switch mode {
	case corev1.ReadWriteOnce, corev1.ReadWriteOncePod:
		return ""
	case corev1.ReadOnlyMany:
		switch {
		case !p.manyRead:
			return "on " + p.name + ask
		case !w.onlyReads():
			return "together with one that writes: the first pod would write under the readers; ask for one of them"
		case !w.Filled:
			return "on a new, empty volume: clone one that has content"
		default:
			return ""
		}
	case corev1.ReadWriteMany:
		switch {
		case !p.manyWrite:
			return "on " + p.name + ask
		case !w.Block():
			return "with a file system on " + p.name + ": ask for volumeMode Block or for ReadWriteOnce"
		default:
			return ""
		}
	default:
		return "on " + p.name + ask
	}
}
