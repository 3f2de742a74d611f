// Package mapper turns what a storage says about a connection into a volume source that the kubelet
// can mount, with the Secret that it needs. One mapper knows one kind of connection.
package mapper

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Want is what claim, class and config ask of the source.
type Want struct {
	PVName      string
	AccessModes []corev1.PersistentVolumeAccessMode
	VolumeMode  corev1.PersistentVolumeMode
	FSType      string
	// Initiator is the name that every node logs in with.
	Initiator string
	// Secret is where the source's Secret will be, if it needs one.
	Secret corev1.SecretReference
}

// Block tells whether the claim wants a raw device.
func (w Want) Block() bool { return w.VolumeMode == corev1.PersistentVolumeBlock }

// Mapping is a volume source, and the Secret to write before it, nil where it needs none.
type Mapping struct {
	Source corev1.PersistentVolumeSource
	Secret *corev1.Secret
}

// Mapper knows one kind of connection.
type Mapper interface {
	// Check says why this kind cannot keep what is wanted, as far as it can be known beforehand.
	Check(w Want) error
	// Map builds the source.
	Map(c volume.Connection, w Want) (Mapping, error)
}

// UnfitError says why a claim or a class cannot be served.
type UnfitError struct {
	// Claim is true where the claim asks for what no volume of this kind can do, and false where the
	// class leads to volumes that cannot be mounted.
	Claim  bool
	Reason string
}

// Error is the reason.
func (u *UnfitError) Error() string { return u.Reason }

// For returns the mapper of a kind of connection, in Cinder's words.
func For(kind string) (Mapper, error) {
	if strings.EqualFold(kind, "iscsi") {
		return iscsi{}, nil
	}
	return nil, &UnfitError{Reason: fmt.Sprintf("volumes of this class are connected by %q, which cannot be mapped to"+
		" a volume source; iscsi can", kind)}
}

// Check refuses what no mapper could serve, before anything is made.
func Check(w Want) error {
	var faults []error
	for _, m := range []Mapper{iscsi{}} {
		err := m.Check(w)
		if err == nil {
			return nil
		}
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}
