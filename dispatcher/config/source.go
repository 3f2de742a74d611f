package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Source is all that a Config is read from. It is stored whole in a revision, so that a volume can be
// deleted after its ConfigMap and its class have gone.
type Source struct {
	Namespace  string            `json:"namespace"`
	Name       string            `json:"name"`
	Class      string            `json:"storageClass"`
	Reclaim    string            `json:"reclaimPolicy"`
	Binding    string            `json:"volumeBindingMode"`
	Data       map[string]string `json:"data"`
	Parameters map[string]string `json:"parameters,omitempty"`
}

// SourceOf joins a ConfigMap and the class that it serves.
func SourceOf(cm *corev1.ConfigMap, class *storagev1.StorageClass) Source {
	params := maps.Clone(class.Parameters)
	delete(params, contract.ParamConfigNamespace)
	reclaim := corev1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		reclaim = *class.ReclaimPolicy
	}
	binding := storagev1.VolumeBindingImmediate
	if class.VolumeBindingMode != nil {
		binding = *class.VolumeBindingMode
	}
	return Source{
		Namespace: cm.Namespace, Name: cm.Name, Class: class.Name,
		Reclaim: string(reclaim), Binding: string(binding), Data: cm.Data, Parameters: params,
	}
}

// NamespaceFor is where the config of a class is looked for: the dispatcher's namespace, or the one
// that the class names. Nobody takes over a class by writing a ConfigMap elsewhere.
func NamespaceFor(class *storagev1.StorageClass, own string) string {
	if ns := class.Parameters[contract.ParamConfigNamespace]; ns != "" {
		return ns
	}
	return own
}

// Encode writes the source as a revision stores it.
func (s Source) Encode() []byte {
	// A struct of strings and maps of strings cannot fail to encode, and maps are written in order.
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return b
}

// DecodeSource reads what Encode wrote.
func DecodeSource(data []byte) (Source, error) {
	var s Source
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("decode a config revision: %w", err)
	}
	return s, nil
}

// RevisionName names the revision after the config and a hash of all that it holds, so that the same
// content always has the same name.
func (s Source) RevisionName() string {
	sum := sha256.Sum256(s.Encode())
	const maxName = 253 - 1 - 16
	name := strings.TrimRight(s.Name[:min(len(s.Name), maxName)], ".") // a cut may end in a dot
	return name + "-" + hex.EncodeToString(sum[:8])
}

// Revision is the revision's "namespace/name", as Jobs and PVs carry it.
func (s Source) Revision() string { return s.Namespace + "/" + s.RevisionName() }

// ClassLabel is a label's value for a class, whose name may be longer than a value may be.
func ClassLabel(class string) string {
	sum := sha256.Sum256([]byte(class))
	return hex.EncodeToString(sum[:8])
}

// NameOfRevision is the config that a revision is of, by the revision's name; of a very long name, its
// beginning.
func NameOfRevision(revision string) string {
	return revision[:max(strings.LastIndexByte(revision, '-'), 0)]
}
