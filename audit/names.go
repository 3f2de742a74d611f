package audit

import (
	"encoding/json"
	"regexp"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// minName is how long the storage's name of a volume must be to be looked for in the volume sources
// of PVs. A number would be found everywhere.
const minName = 8

// MayStandFor returns a function that reports whether a PV of any origin and name may be that of a
// listed volume. It is if
//   - the PV names the volume's claim by its UID,
//   - the PV has no UID, and names the volume's claim by its name, or
//   - its volume source contains the storage's name of the volume, as an iSCSI name contains the ID of a Cinder volume.
func MayStandFor(volume Volume) func(pv *corev1.PersistentVolume) bool {
	named := func(*corev1.PersistentVolume) bool { return false }
	if len(volume.Volume) >= minName {
		name := apart(volume.Volume)
		named = func(pv *corev1.PersistentVolume) bool {
			text, err := json.Marshal(pv.Spec.PersistentVolumeSource)
			return err == nil && name.Match(text)
		}
	}
	return func(pv *corev1.PersistentVolume) bool {
		ref := pv.Spec.ClaimRef
		switch {
		case pv.Annotations[contract.AnnClaimUID] == volume.UID, ref != nil && string(ref.UID) == volume.UID:
			return true
		case ref != nil && ref.UID == "" && ref.Name == volume.Name && ref.Namespace == volume.Namespace:
			return true
		default:
			return named(pv)
		}
	}
}

// apart returns what finds a name in a text of JSON, in capitals or not, and not as a part of a
// longer word or number. Beside a slash, as at the ends of a path, anything may stand.
func apart(name string) *regexp.Regexp {
	quoted, err := json.Marshal(name) // as it stands in such a text
	if err != nil {
		panic(err) // a string can always be encoded
	}
	before, after := "", ""
	if isWord(name[0]) {
		before = `(?:^|[^0-9a-z])`
	}
	if isWord(name[len(name)-1]) {
		after = `(?:[^0-9a-z]|$)`
	}
	return regexp.MustCompile(`(?i)` + before + regexp.QuoteMeta(string(quoted[1:len(quoted)-1])) + after)
}

func isWord(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
