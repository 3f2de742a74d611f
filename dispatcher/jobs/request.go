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

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

// Annotations of a claim that an admission policy stamps with the user who created it. The
// dispatcher passes them on if it trusts them.
const (
	AnnUsername = contract.Domain + "username"
	AnnGroups   = contract.Domain + "groups"
)

// Request returns what a claim asks for, as the image sees it, but for its node: where no scheduler
// selects one, the claim's annotation is any text of its user.
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
		AccessModes:   texts(Modes(claim.Spec.AccessModes)),
		VolumeMode:    string(mode),
		MountOptions:  class.MountOptions,
		ReclaimPolicy: cfg.Source.Reclaim,
		Properties:    cfg.Properties,
	}
	r.Labels, r.Annotations, _ = TextOf(claim)
	r.AllowedTopologies = allowedTopologies(class)
	if name := claim.Spec.VolumeAttributesClassName; name != nil {
		r.AttributesClass = *name
	}
	return r
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
const hashVersion = "3"

// Hash returns a hash of what a claim asks for: its spec, and what the class says beside its
// parameters. If the request carries labels and annotations of the claim, it also has those that
// the config's request-keys name. Everything else may be written by controllers at any time: an
// annotation that was renewed every ten seconds once was a new request each time
// (TestAnAnnotationThatAlwaysChangesIsNoRetryStorm). Parameters are part of the config revision. A
// claim's name, namespace and UID never change: without them, the claims of a batch that ask for
// the same have one hash, which stands on their Job once.
func Hash(r contract.Request, requestKeys []string) string {
	r.SelectedNode, r.SelectedZone, r.SelectedTopology, r.Undo, r.Properties = "", "", nil, false, nil
	r.Username, r.Group = "", ""
	r.UID, r.PVName, r.Namespace, r.Name = "", "", "", ""
	r.Labels, r.Annotations = only(r.Labels, requestKeys), only(r.Annotations, requestKeys)
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings, numbers and maps of strings: cannot fail
	}
	sum := sha256.Sum256(b)
	return hashVersion + "-" + hex.EncodeToString(sum[:8])
}

// SameRequest reports whether two hashes are of the same request. Hashes of different versions
// cannot be compared, and count as the same: an upgrade of the dispatcher is no new request of
// every claim.
func SameRequest(a, b string) bool { return a == b || versionOf(a) != versionOf(b) }

// versionOf returns the version of a hash. A size, which is an expand's, has none, and neither has
// a hash of the first version.
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

// SizeHash returns what an expand asks for: a size in bytes. Unlike a claim's hash it can be
// parsed.
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

// texts returns a list as strings.
func texts[T ~string](in []T) []string {
	out := make([]string, len(in))
	for i, v := range in {
		out[i] = string(v)
	}
	return out
}
