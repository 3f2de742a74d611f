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
	storagehelpers "k8s.io/component-helpers/storage/volume"

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

// maxClaimText is the largest size of a claim's labels and annotations that a request carries, in bytes of JSON.
const maxClaimText = 4096

// Request returns what a claim asks for, as the image sees it. zone is the selected node's.
func Request(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, cfg config.Config, zone string) contract.Request {
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
		SelectedNode:  claim.Annotations[storagehelpers.AnnSelectedNode],
		SelectedZone:  zone,
		Labels:        claim.Labels,
		Annotations:   withoutOwn(claim.Annotations),
		Properties:    cfg.Properties,
	}
	r.AllowedTopologies = allowedTopologies(class)
	if name := claim.Spec.VolumeAttributesClassName; name != nil {
		r.AttributesClass = *name
	}
	if text, err := json.Marshal([]any{r.Labels, r.Annotations}); err != nil || len(text) > maxClaimText {
		r.Labels, r.Annotations = nil, nil
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

// Hash returns a hash of what a claim asks for. It changes when the user changes the request, not when a controller
// writes its own annotations or the scheduler selects a node.
func Hash(r contract.Request) string {
	r.SelectedNode, r.SelectedZone, r.SelectedTopology, r.Undo, r.Properties = "", "", nil, false, nil
	r.Username, r.Group = "", ""
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings, numbers and maps of strings: cannot fail
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
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
		domain, _, _ := strings.Cut(key, "/")
		if domain+"/" == contract.Domain || domain == metav1.GroupName || strings.HasSuffix(domain, "kubernetes.io") {
			continue
		}
		out[key] = value
	}
	return out
}

// texts returns a list as strings.
func texts[T ~string](in []T) []string {
	out := make([]string, len(in))
	for i, v := range in {
		out[i] = string(v)
	}
	return out
}
