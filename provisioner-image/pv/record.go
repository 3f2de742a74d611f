package pv

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Annotations that record on the PV what a later run needs to release, grow or delete the volume.
const (
	AnnVolumeID  = contract.Domain + "cinder-volume-id"
	AnnAttachAPI = contract.Domain + "cinder-attach-api"
	AnnConnector = contract.Domain + "cinder-connector"
	// AnnAttachment is the ID of the volume's attachment, with the attachments API.
	AnnAttachment = contract.Domain + "cinder-attachment-id"
	// AnnPlace is where the volume was made.
	AnnPlace = volume.KeyPlace
)

// Record is what a run records on the PV.
type Record struct {
	VolumeID string
	// Place is where the volume was made. PVs of an older image do not have it.
	Place   volume.Place
	Access  volume.Access
	Secret  corev1.SecretReference
	CloneOf string
	// Adopted is set if the volume held data before it was the claim's. It is not noted on the PV,
	// whose policy is Retain then.
	Adopted bool
}

// annotations returns the record as annotations of the PV.
func (r Record) annotations() (map[string]string, error) {
	connector, err := json.Marshal(r.Access.Client)
	if err != nil {
		return nil, fmt.Errorf("write the connector on the PV: %w", err)
	}
	annotations := map[string]string{
		AnnVolumeID:  r.VolumeID,
		AnnAttachAPI: string(r.Access.Method),
		AnnConnector: string(connector),
	}
	if r.Place != (volume.Place{}) {
		annotations[AnnPlace] = r.Place.String()
	}
	if r.Access.ID != "" {
		annotations[AnnAttachment] = r.Access.ID
	}
	if r.CloneOf != "" {
		annotations[contract.AnnCloneOf] = r.CloneOf
	}
	if r.Secret.Name != "" {
		annotations[contract.AnnSecret] = r.Secret.Namespace + "/" + r.Secret.Name
	}
	for name, value := range annotations {
		if strings.ContainsFunc(value, unicode.IsControl) {
			return nil, fmt.Errorf("write %s on the PV: the storage reports %q, which has control characters", name, value)
		}
	}
	return annotations, nil
}

func checkIDs(of *corev1.PersistentVolume) error {
	for _, key := range []string{AnnVolumeID, AnnAttachment} {
		if id := of.Annotations[key]; id != "" && !volume.IsID(id) {
			return fmt.Errorf("read annotation %s of PV %s: %q is not an ID", key, of.Name, id)
		}
	}
	return nil
}

// ReadRecord reads the record of a PV. What is not recorded keeps the value that a run would use
// now: the skeleton of an undo has no record.
func ReadRecord(of *corev1.PersistentVolume, now Record) (Record, error) {
	r := now
	annotations := of.GetAnnotations()
	if err := checkIDs(of); err != nil {
		return r, err
	}
	r.VolumeID, r.CloneOf = annotations[AnnVolumeID], annotations[contract.AnnCloneOf]
	r.Access.ID = annotations[AnnAttachment]
	if recorded := annotations[AnnAttachAPI]; recorded != "" {
		r.Access.Method = volume.Method(recorded)
	}
	if recorded := annotations[AnnConnector]; recorded != "" {
		r.Access.Client = volume.Client{}
		if err := json.Unmarshal([]byte(recorded), &r.Access.Client); err != nil {
			return r, fmt.Errorf("read annotation %s of PV %s: %w", AnnConnector, of.Name, err)
		}
	}
	if recorded := annotations[AnnPlace]; recorded != "" {
		if err := json.Unmarshal([]byte(recorded), &r.Place); err != nil {
			return r, fmt.Errorf("read annotation %s of PV %s: %w", AnnPlace, of.Name, err)
		}
	}
	return r, nil
}
