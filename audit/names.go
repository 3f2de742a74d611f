package audit

import (
	"encoding/json"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// minName is how long the storage's name of a volume must be to be looked for in the volume sources
// of PVs. A number would be found everywhere.
const minName = 8

// Holder is a PV, and its volume source as names are looked for in it.
type Holder struct {
	*corev1.PersistentVolume

	source string
}

// HolderOf returns a PV as a Holder. Its source is encoded once for all volumes that are looked
// for.
func HolderOf(pv *corev1.PersistentVolume) Holder {
	text, err := json.Marshal(pv.Spec.PersistentVolumeSource)
	if err != nil {
		panic(err) // a struct of texts, numbers and the like can always be encoded
	}
	return Holder{pv, strings.ToLower(string(text))}
}

// MayStandFor returns a function that reports whether a PV of any origin and name may be that of a
// listed volume. It is if
//   - the PV names the volume's claim by its UID,
//   - the PV has no UID, and names the volume's claim by its name, or
//   - its volume source contains the storage's name of the volume, as an iSCSI name contains the ID
//     of a Cinder volume.
func MayStandFor(volume Volume) func(pv Holder) bool {
	named := func(string) bool { return false }
	if len(volume.Volume) >= minName {
		named = apart(volume.Volume)
	}
	return func(pv Holder) bool {
		ref := pv.Spec.ClaimRef
		switch {
		case pv.Annotations[contract.AnnClaimUID] == volume.UID, ref != nil && string(ref.UID) == volume.UID:
			return true
		case ref != nil && ref.UID == "" && ref.Name == volume.Name && ref.Namespace == volume.Namespace:
			return true
		default:
			return named(pv.source)
		}
	}
}

// apart returns what finds a name in a text of JSON in small letters, whatever letters the name
// has, and not as a part of a longer word or number. Beside a slash, as at the ends of a path,
// anything may stand.
func apart(name string) func(text string) bool {
	encoded, err := json.Marshal(name) // as it stands in such a text
	if err != nil {
		panic(err) // a string can always be encoded
	}
	plain := strings.ToLower(name)
	first, last := isWord(plain[0]), isWord(plain[len(plain)-1])
	name = strings.ToLower(string(encoded[1 : len(encoded)-1]))
	return func(text string) bool {
		for from := 0; ; from++ {
			at := strings.Index(text[from:], name)
			if at < 0 {
				return false
			}
			from += at
			end := from + len(name)
			inLonger := first && from > 0 && isWord(text[from-1]) || last && end < len(text) && isWord(text[end])
			if !inLonger {
				return true
			}
		}
	}
}

// isWord reports whether a byte of a text in small letters is part of a word or number.
func isWord(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' }
