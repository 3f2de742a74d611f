package audit

import (
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// minName is how long the storage's name of a volume must be to be looked for in the volume sources
// of PVs. A number would be found everywhere.
const minName = 8

// mostAlike is in how many volume sources a name is looked for. Where more have all of its words, it
// may be in one of them. A storage that lists names of such words once took minutes of an audit for
// each thousand (TestNamesThatManySourcesContainAreLookedForInFew).
const mostAlike = 100

// holders are PVs of any origin and name, by what makes one that of a listed volume.
type holders struct {
	uids    map[string]bool
	claims  map[types.NamespacedName]bool // named without a UID
	sources []string                      // as JSON in small letters
	words   map[string][]int              // the sources that have a word or number
}

func holdersOf(pvs []*corev1.PersistentVolume) holders {
	h := holders{uids: map[string]bool{}, claims: map[types.NamespacedName]bool{}, words: map[string][]int{}}
	for i, pv := range pvs {
		h.uids[pv.Annotations[contract.AnnClaimUID]] = true
		switch ref := pv.Spec.ClaimRef; {
		case ref == nil:
		case ref.UID == "":
			h.claims[types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}] = true
		default:
			h.uids[string(ref.UID)] = true
		}
		text, err := json.Marshal(pv.Spec.PersistentVolumeSource)
		if err != nil {
			panic(err) // a struct of texts, numbers and the like can always be encoded
		}
		h.sources = append(h.sources, strings.ToLower(string(text)))
		for _, word := range wordsOf(h.sources[i]) {
			if known := h.words[word]; len(known) == 0 || known[len(known)-1] != i {
				h.words[word] = append(known, i)
			}
		}
	}
	delete(h.uids, "")
	return h
}

// mayStandFor reports whether one of the PVs may be that of a listed volume. It is if
//   - the PV names the volume's claim by its UID,
//   - the PV has no UID, and names the volume's claim by its name, or
//   - its volume source contains the storage's name of the volume, as an iSCSI name contains the ID
//     of a Cinder volume.
func (h holders) mayStandFor(volume Volume) bool {
	return h.uids[volume.UID] || h.claims[types.NamespacedName{Namespace: volume.Namespace, Name: volume.Name}] || len(volume.Volume) >= minName && h.mayName(volume.Volume)
}

// mayName reports whether a volume source contains a name, whatever letters it has, and not as a part
// of a longer word or number. Beside a slash, as at the ends of a path, anything may stand.
func (h holders) mayName(name string) bool {
	encoded, err := json.Marshal(name) // as it stands in a source
	if err != nil {
		panic(err) // a string can always be encoded
	}
	plain := strings.ToLower(name)
	first, last := isWord(rune(plain[0])), isWord(rune(plain[len(plain)-1]))
	name = strings.ToLower(string(encoded[1 : len(encoded)-1]))
	words := wordsOf(name)
	if isWord(rune(name[len(name)-1])) && !last { // of an escape, such as \u003e: anything may follow it
		words = words[:len(words)-1]
	}
	if len(words) == 0 {
		return false // a name without words is in every source, as a number is
	}
	rarest := slices.MinFunc(words, func(a, b string) int { return len(h.words[a]) - len(h.words[b]) })
	alike := h.words[rarest]
	return len(alike) > mostAlike || slices.ContainsFunc(alike, func(i int) bool { return isApart(h.sources[i], name, first, last) })
}

// isApart reports whether a text contains a name, and not as a part of a longer word where its first
// or last letter is one of a word.
func isApart(text, name string, first, last bool) bool {
	for from := 0; ; from++ {
		at := strings.Index(text[from:], name)
		if at < 0 {
			return false
		}
		from += at
		end := from + len(name)
		if inLonger := first && from > 0 && isWord(rune(text[from-1])) || last && end < len(text) && isWord(rune(text[end])); !inLonger {
			return true
		}
	}
}

// wordsOf returns the words and numbers of a text in small letters.
func wordsOf(text string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return !isWord(c) })
}

// isWord reports whether a letter of a text in small letters is part of a word or number.
func isWord(c rune) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' }
