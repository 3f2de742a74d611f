package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

// Annotations of a claim that an admission policy stamps with the user who created it. The dispatcher passes them on if
// it trusts them.
const (
	AnnUsername = contract.Domain + "username"
	AnnGroups   = contract.Domain + "groups"
)

// MaxClaimText is the largest size of a claim's labels and annotations that a request carries, in bytes of JSON.
const MaxClaimText = 4096

// CutMark is on no stored object. The caches set it on a claim of whose labels and annotations they keep only some, since a request carries none.
const CutMark = contract.Domain + "cut"

// Request returns what a claim asks for, as the image sees it, but for its node: where no scheduler selects one, the claim's
// annotation is any text of its user.
func Request(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, cfg config.Config) contract.Request {
	mode := corev1.PersistentVolumeFilesystem
	if claim.Spec.VolumeMode != nil {
		mode = *claim.Spec.VolumeMode
	}
	r := contract.Request{
		UID:           string(claim.UID),
		PVName:        contract.PVName(string(claim.UID)),
		Namespace:     claim.Namespace,
		Name:          claim.Name,
		Class:         class.Name,
		Size:          claim.Spec.Resources.Requests.Storage().Value(),
		AccessModes:   texts(claim.Spec.AccessModes),
		VolumeMode:    string(mode),
		MountOptions:  class.MountOptions,
		ReclaimPolicy: cfg.Source.Reclaim,
		Labels:        claim.Labels,
		Annotations:   withoutOwn(claim.Annotations),
		Properties:    cfg.Properties,
	}
	r.AllowedTopologies = allowedTopologies(class)
	if name := claim.Spec.VolumeAttributesClassName; name != nil {
		r.AttributesClass = *name
	}
	if _, wasCut := claim.Annotations[CutMark]; wasCut || !FitsRequest(claim.Labels, claim.Annotations) {
		r.Labels, r.Annotations = nil, nil
	}
	return r
}

// FitsRequest reports whether a request can carry the labels and annotations of a claim.
func FitsRequest(labels, annotations map[string]string) bool {
	text, err := json.Marshal([]any{labels, withoutOwn(annotations)})
	return err == nil && len(text) <= MaxClaimText
}

// allowedTopologies returns the topologies that a class allows.
func allowedTopologies(class *storagev1.StorageClass) []map[string][]string {
	var out []map[string][]string
	for _, term := range class.AllowedTopologies {
		values := map[string][]string{}
		for _, e := range term.MatchLabelExpressions {
			values[e.Key] = e.Values
		}
		out = append(out, values)
	}
	return out
}

// hashVersion is the version of what Hash covers.
const hashVersion = "2"

// Hash returns a hash of what a claim asks for: its spec, what the class says beside its parameters, and those labels and annotations of
// the claim that the config's request-keys name. Everything else may be written by controllers at any time: an annotation that
// was renewed every ten seconds once was a new request each time. Parameters are part of the config revision.
func Hash(r contract.Request, claim *corev1.PersistentVolumeClaim, requestKeys []string) string {
	r.SelectedNode, r.SelectedZone, r.SelectedTopology, r.Undo, r.Properties = "", "", nil, false, nil
	r.Username, r.Group = "", ""
	r.Labels, r.Annotations = only(claim.Labels, requestKeys), only(claim.Annotations, requestKeys)
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings, numbers and maps of strings: cannot fail
	}
	sum := sha256.Sum256(b)
	return hashVersion + "-" + hex.EncodeToString(sum[:8])
}

// SameRequest reports whether two hashes are of the same request. Hashes of different versions cannot be compared, and count as the same:
// an upgrade of the dispatcher is no new request of every claim.
func SameRequest(a, b string) bool { return a == b || versionOf(a) != versionOf(b) }

// versionOf returns the version of a hash. A size, which is an expand's, has none, and neither has a hash of the first version.
func versionOf(hash string) string {
	version, _, found := strings.Cut(hash, "-")
	if !found {
		return ""
	}
	return version
}

// only returns the entries of a map with these keys.
func only(all map[string]string, keys []string) map[string]string {
	out := map[string]string{}
	for _, key := range keys {
		if value, found := all[key]; found {
			out[key] = value
		}
	}
	return out
}

// SizeHash returns what an expand asks for: a size in bytes. Unlike a claim's hash it can be parsed.
func SizeHash(size resource.Quantity) string { return strconv.FormatInt(size.Value(), 10) }

// RequestOf returns the request of a volume for delete and expand, rebuilt from its PV.
func RequestOf(pv *corev1.PersistentVolume, cfg config.Config) contract.Request {
	r := contract.Request{
		UID:           pv.Annotations[contract.AnnClaimUID],
		PVName:        pv.Name,
		Class:         pv.Spec.StorageClassName,
		Size:          pv.Spec.Capacity.Storage().Value(),
		AccessModes:   texts(pv.Spec.AccessModes),
		MountOptions:  pv.Spec.MountOptions,
		ReclaimPolicy: string(pv.Spec.PersistentVolumeReclaimPolicy),
		SelectedNode:  pvs.NodeOf(pv),
		Properties:    cfg.Properties,
	}
	if pv.Spec.VolumeMode != nil {
		r.VolumeMode = string(*pv.Spec.VolumeMode)
	}
	if name := pv.Spec.VolumeAttributesClassName; name != nil {
		r.AttributesClass = *name
	}
	if ref := pv.Spec.ClaimRef; ref != nil {
		r.Namespace, r.Name = ref.Namespace, ref.Name
	}
	return r
}

// withoutOwn returns annotations without the dispatcher's and Kubernetes' own.
func withoutOwn(annotations map[string]string) map[string]string {
	out := map[string]string{}
	for key, value := range annotations {
		if IsCarried(key) {
			out[key] = value
		}
	}
	return out
}

// IsCarried reports whether a request carries an annotation: it is neither the dispatcher's nor Kubernetes' own.
func IsCarried(key string) bool {
	domain, _, _ := strings.Cut(key, "/")
	return domain+"/" != contract.Domain && domain != metav1.GroupName && !strings.HasSuffix(domain, "kubernetes.io")
}

// texts returns a list as strings.
func texts[T ~string](in []T) []string {
	out := make([]string, len(in))
	for i, v := range in {
		out[i] = string(v)
	}
	return out
}
