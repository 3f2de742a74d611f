package jobs

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// maxClaimText is the largest size of a claim's labels and annotations that a request carries, in bytes of JSON.
const maxClaimText = 4096

// AnnCut is on no stored object. The caches set it on a claim of whose labels and annotations they keep only some, since a request carries none.
const AnnCut = contract.Domain + "cut"

// longestName is the longest text that is kept as it is where it names something, in bytes. The names of nodes, classes and claims are shorter.
const longestName = 512

// Abridge returns a text as it is kept where it is only compared: a long one as its hash, which names nothing.
func Abridge(text string) string {
	if len(text) <= longestName {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Modes returns access modes, each once. Kubernetes accepts a claim that names one of them many thousand times.
func Modes(all []corev1.PersistentVolumeAccessMode) []corev1.PersistentVolumeAccessMode {
	var out []corev1.PersistentVolumeAccessMode
	for _, mode := range all {
		if !slices.Contains(out, mode) {
			out = append(out, mode)
		}
	}
	return out
}

// Text is what of a claim's labels and annotations a request carries or its hash may cover.
type Text struct {
	Labels, Annotations map[string]string
	// Whole is set if a request carries the labels and annotations.
	Whole bool
}

// TextOf returns the text of a claim. Whoever may write claims chooses it, and the caches keep it of every claim that is not bound, so it is small: what a
// request carries, all of that or none, and as much of the rest as there is room for, since the request-keys of a config may name it. The
// smallest come first, so that a large one that is added later takes the place of none. The text of what is kept of a claim is the same as that of the claim.
func TextOf(claim *corev1.PersistentVolumeClaim) Text {
	_, wasCut := claim.Annotations[AnnCut]
	out := Text{Annotations: map[string]string{}, Whole: !wasCut && fitsRequest(claim)}
	for _, key := range []string{contract.AnnCloneRequest, contract.AnnClaimCloneOf} {
		if value, found := claim.Annotations[key]; found {
			out.Annotations[key] = Abridge(value)
		}
	}
	room := maxClaimText
	for _, e := range entriesOf(claim, out.Whole) {
		if room -= len(e.key) + len(e.value); room < 0 {
			break
		}
		out.add(e)
	}
	return out
}

func (t *Text) add(e entry) {
	if !e.isLabel {
		t.Annotations[e.key] = e.value
		return
	}
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	t.Labels[e.key] = e.value
}

// entry is a label or an annotation.
type entry struct {
	key, value       string
	isLabel, carried bool
}

// entriesOf returns the labels, and the annotations that are not the dispatcher's or of Kubernetes' controllers, in the order in which they are kept.
func entriesOf(claim *corev1.PersistentVolumeClaim, whole bool) []entry {
	var out []entry
	for key, value := range claim.Labels {
		out = append(out, entry{key, value, true, whole})
	}
	for key, value := range claim.Annotations {
		asksForClone := key == contract.AnnCloneRequest || key == contract.AnnClaimCloneOf // it is there already, perhaps abridged
		if carried := isCarried(key); whole && carried || !isOfControllers(key) && !asksForClone {
			out = append(out, entry{key, value, false, whole && carried})
		}
	}
	slices.SortFunc(out, func(a, b entry) int {
		return cmp.Or(compareBool(b.carried, a.carried), cmp.Compare(len(a.key)+len(a.value), len(b.key)+len(b.value)),
			cmp.Compare(a.key, b.key), compareBool(a.isLabel, b.isLabel))
	})
	return out
}

// carriedText returns the labels and annotations of a claim that a request carries.
func carriedText(claim *corev1.PersistentVolumeClaim) (labels, annotations map[string]string) {
	if _, wasCut := claim.Annotations[AnnCut]; wasCut || !fitsRequest(claim) {
		return nil, nil
	}
	return claim.Labels, withoutOwn(claim.Annotations)
}

// fitsRequest reports whether a request can carry the labels and annotations of a claim.
func fitsRequest(claim *corev1.PersistentVolumeClaim) bool {
	text, err := json.Marshal([]any{claim.Labels, withoutOwn(claim.Annotations)})
	return err == nil && len(text) <= maxClaimText
}

// withoutOwn returns annotations without the dispatcher's and Kubernetes' own.
func withoutOwn(annotations map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range annotations {
		if isCarried(key) {
			out[key] = value
		}
	}
	return out
}

// isCarried reports whether a request carries an annotation: it is neither the dispatcher's nor Kubernetes' own.
func isCarried(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain+"/" != contract.Domain && domain != metav1.GroupName && !strings.HasSuffix(domain, "kubernetes.io")
}

// isOfControllers reports whether no config's request-keys can name an annotation: the dispatcher and Kubernetes' controllers write it.
func isOfControllers(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return strings.HasPrefix(key, contract.Domain) || slices.Contains([]string{"volume.kubernetes.io", "volume.beta.kubernetes.io", "pv.kubernetes.io"}, domain)
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	default:
		return 1
	}
}
