package pvs

import (
	"encoding/json"
	"regexp"

	corev1 "k8s.io/api/core/v1"
)

// minName is how long the storage's name of a volume must be to be looked for in the volume sources of PVs. A number would be found everywhere.
const minName = 8

// NamesVolume returns a function that reports whether the volume source of a PV has the storage's own name of a volume in it, as the ID of a Cinder volume
// is part of its iSCSI name. Such a PV stands for the volume, whoever wrote it.
func NamesVolume(volume string) func(pv *corev1.PersistentVolume) bool {
	if len(volume) < minName {
		return func(*corev1.PersistentVolume) bool { return false }
	}
	name := regexp.MustCompile(`(?i)\b` + regexp.QuoteMeta(volume) + `\b`)
	return func(pv *corev1.PersistentVolume) bool {
		text, err := json.Marshal(pv.Spec.PersistentVolumeSource)
		return err == nil && name.Match(text)
	}
}
