package pv_test

import (
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/pv"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

func skeleton() *corev1.PersistentVolume {
	s := &corev1.PersistentVolume{}
	s.Name = "pvc-1"
	s.Annotations = map[string]string{"other": "kept"}
	return s
}

// A later run reads what was recorded, whatever the config says by then.
func TestRecordIsReadAsItWasWritten(t *testing.T) {
	recorded := pv.Record{
		VolumeID: "v",
		Place:    volume.Place{Endpoint: "https://192.0.2.1/v3", Region: "one", Project: "p"},
		Access: volume.Access{
			Method: "attachments", ID: "a", Client: volume.Client{Initiator: "iqn.then", Host: "h"},
		},
		Secret: corev1.SecretReference{Namespace: "ours", Name: "pvc-1"},
	}
	now := pv.Record{
		Access: volume.Access{Method: "reserve", Client: volume.Client{Initiator: "iqn.now", IP: "192.0.2.1"}},
	}
	built, err := pv.Build(skeleton(), corev1.PersistentVolumeSource{}, 3, recorded)
	if err != nil {
		t.Fatal(err)
	}
	if size := built.Spec.Capacity[corev1.ResourceStorage]; size.String() != "3Gi" || built.Annotations["other"] != "kept" {
		t.Errorf("built %+v", built)
	}
	read, err := pv.ReadRecord(built, now)
	if err != nil {
		t.Fatal(err)
	}
	recorded.Secret = corev1.SecretReference{} // which whoever forges a PV may name, and no run needs: it follows from the claim
	if diff := cmp.Diff(recorded, read); diff != "" {
		t.Error(diff)
	}
	if read, err = pv.ReadRecord(skeleton(), now); err != nil || !cmp.Equal(read, now) {
		t.Errorf("without annotations: %+v, %v", read, err)
	}
}

// The ID of a volume or of an attachment is the storage's, and the PV is printed on terminals.
func TestAnIDWithControlCharactersIsNotRecorded(t *testing.T) {
	for _, r := range []pv.Record{{VolumeID: "v\n"}, {Access: volume.Access{ID: "\x1b[31m"}}, {CloneOf: "app/\u0085"}} {
		if _, err := pv.Build(skeleton(), corev1.PersistentVolumeSource{}, 1, r); err == nil || strings.ContainsFunc(err.Error(), unicode.IsControl) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func TestSpoiledRecordNamesItsAnnotation(t *testing.T) {
	for annotation, value := range map[string]string{
		pv.AnnConnector: "{", pv.AnnPlace: "{", pv.AnnVolumeID: "../attachments/a", pv.AnnAttachment: "../volumes/v",
	} {
		spoiled := skeleton()
		spoiled.Annotations[annotation] = value
		if _, err := pv.ReadRecord(spoiled, pv.Record{}); err == nil || !strings.Contains(err.Error(), annotation) {
			t.Errorf("%s: %v", annotation, err)
		}
	}
}
