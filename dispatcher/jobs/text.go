package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// maxClaimText is the largest size of a claim's labels and annotations that a request carries, in
// bytes of JSON.
const maxClaimText = 4096

// longestName is the longest text that is kept as it is where it names something, in bytes. The
// names of nodes, classes and claims are shorter.
const longestName = 512

// Abridge returns a text as it is kept where it is only compared: a long one as its hash, which
// names nothing.
func Abridge(text string) string {
	if len(text) <= longestName {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Modes returns access modes, each once. Kubernetes accepts a claim that names one of them many
// thousand times.
func Modes(all []corev1.PersistentVolumeAccessMode) []corev1.PersistentVolumeAccessMode {
	var out []corev1.PersistentVolumeAccessMode
	for _, mode := range all {
		if !slices.Contains(out, mode) {
			out = append(out, mode)
		}
	}
	return out
}

// TextOf returns the labels and annotations of a claim that a request carries: without the
// dispatcher's and Kubernetes' own, and all or none, as fits says. Whoever may write claims chooses
// them, and the caches keep them of every claim that is not bound, so they are small.
func TextOf(claim *corev1.PersistentVolumeClaim) (labels, annotations map[string]string, fits bool) {
	if _, wasCut := claim.Annotations[config.AnnCut]; wasCut {
		return nil, nil, false
	}
	annotations = map[string]string{}
	for key, value := range claim.Annotations {
		if isCarried(key) {
			annotations[key] = value
		}
	}
	if text, err := json.Marshal([]any{claim.Labels, annotations}); err != nil || len(text) > maxClaimText {
		return nil, nil, false
	}
	return claim.Labels, annotations, true
}

// isCarried reports whether a request carries an annotation: it is neither the dispatcher's nor
// Kubernetes' own.
func isCarried(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain+"/" != contract.Domain && domain != metav1.GroupName && !strings.HasSuffix(domain, "kubernetes.io")
}
