package config

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"unicode"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Source is everything that a Config is parsed from. It is stored whole in a revision, so that a
// volume can be deleted when its ConfigMap and its class no longer exist.
type Source struct {
	Namespace  string            `json:"namespace"`
	Name       string            `json:"name"`
	Class      string            `json:"storageClass"`
	Reclaim    string            `json:"reclaimPolicy"`
	Binding    string            `json:"volumeBindingMode"`
	Data       map[string]string `json:"data"`
	Parameters map[string]string `json:"parameters,omitempty"`
	// DataSize is the size of data that the caches do not keep, since they are too large. No
	// revision has it: such a config has a fault.
	DataSize int `json:"dataSize,omitempty"`

	// revision is the name of the revision, where it is known: from which the source was read, or
	// as Named computed it.
	revision string
}

// SourceOf joins a ConfigMap and the class that it serves.
func SourceOf(cm *corev1.ConfigMap, class *storagev1.StorageClass) Source {
	params := maps.Clone(class.Parameters)
	delete(params, contract.ParamConfigNamespace)
	delete(params, contract.ParamConfig)
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
		Reclaim: string(reclaim), Binding: string(binding), Data: served(cm.Data), Parameters: params, DataSize: DroppedSize(cm),
	}
}

// From returns the source with the data of another ConfigMap of its class.
func (s Source) From(cm *corev1.ConfigMap) Source {
	s.Name, s.Data, s.DataSize, s.revision = cm.Name, served(cm.Data), DroppedSize(cm), ""
	return s
}

// NamespaceFor returns the namespace of a class's config: the dispatcher's --namespace, or the one
// that the class names. A user cannot take over a class by creating a ConfigMap in another
// namespace.
func NamespaceFor(class *storagev1.StorageClass, own string) string {
	if ns := class.Parameters[contract.ParamConfigNamespace]; ns != "" {
		return ns
	}
	return own
}

// NameFor returns the name of the ConfigMap that a class names, or nothing if that is found by its
// label.
func NameFor(class *storagev1.StorageClass) string { return class.Parameters[contract.ParamConfig] }

// Lists reports whether a ConfigMap lists a class, and so consents to serve a class that names it.
func Lists(cm *corev1.ConfigMap, class string) bool {
	for word := range strings.FieldsFuncSeq(cm.Data[keyClasses], isSeparator) {
		if word == class || word == anyClass {
			return true
		}
	}
	return false
}

// Admits reports whether a ConfigMap serves the claims of a namespace. Without the key it serves
// those of all namespaces, and with a list that names none, or is too long, it serves none.
func Admits(cm *corev1.ConfigMap, namespace string) bool {
	list, limited := cm.Data[keyNamespaces]
	if !limited || len(list) > longestList {
		return !limited
	}
	for word := range strings.FieldsFuncSeq(list, isSeparator) {
		prefix, isPrefix := strings.CutSuffix(word, "*")
		if word == namespace || isPrefix && strings.HasPrefix(namespace, prefix) {
			return true
		}
	}
	return false
}

// NamespacesFaults returns what of the list of namespaces names none.
func NamespacesFaults(cm *corev1.ConfigMap) (faults field.ErrorList) {
	list, limited := cm.Data[keyNamespaces]
	if len(list) > longestList {
		return field.ErrorList{field.TooLong(at(keyNamespaces), "", longestList)}
	}
	words := strings.FieldsFunc(list, isSeparator)
	if limited && len(words) == 0 {
		faults = append(faults, field.Required(at(keyNamespaces), "names or prefixes such as team-a, ci-*: "+
			"the config serves no claim. Without the key it serves those of all namespaces"))
	}
	for _, word := range words {
		name, isPrefix := strings.CutSuffix(word, "*")
		if len(apivalidation.NameIsDNSLabel(name, isPrefix)) > 0 && word != "*" {
			faults = append(faults, field.Invalid(at(keyNamespaces), word, "no namespace has such a name: "+
				"it must be a name such as team-a, or a prefix such as ci-*"))
		}
	}
	return few(faults)
}

// IsListing reports whether a ConfigMap lists classes.
func IsListing(cm *corev1.ConfigMap) bool {
	_, ok := cm.Data[keyClasses]
	return ok
}

// OnlyLists returns of the data of a ConfigMap its lists of classes and of namespaces, and which
// deleted volumes are kept. One that is too long to be kept says nothing.
func OnlyLists(data map[string]string) map[string]string {
	out := map[string]string{}
	for _, key := range []string{keyClasses, keyNamespaces, keyKeepDeleted, keyKeepLimit} {
		list, ok := data[key]
		switch {
		case !ok:
		case len(list) > longestList:
			out[key] = ""
		default:
			out[key] = strings.Clone(list)
		}
	}
	return out
}

// longestList is how long a list of namespaces may be, in bytes, and one of classes where the other
// data are not kept.
const longestList = 16 << 10

// anyClass is what a ConfigMap lists that serves every class that names it.
const anyClass = "*"

// isSeparator reports whether a character separates the words of a list.
func isSeparator(r rune) bool { return r == ',' || unicode.IsSpace(r) }

// served returns the data of a ConfigMap as a source has them. They are without the lists of its
// classes and namespaces, which say nothing of how they are served: when one is added, the others
// keep their revisions. And the image of a script is under a key of its own.
func served(data map[string]string) map[string]string {
	_, lists := data[keyClasses]
	_, limited := data[keyNamespaces]
	_, hasScript := data[keyScript]
	if !lists && !limited && !hasScript {
		return data
	}
	data = maps.Clone(data)
	delete(data, keyClasses)
	delete(data, keyNamespaces)
	if image, ok := data[keyImage]; ok && hasScript {
		delete(data, keyImage)
		data[keyImageOfScript] = image
	}
	return data
}

// Written returns the data as a ConfigMap that serves one class can have them.
func (s Source) Written() map[string]string {
	data := maps.Clone(s.Data)
	if image, ok := data[keyImageOfScript]; ok {
		delete(data, keyImageOfScript)
		data[keyImage] = image
	}
	return data
}

// Encode returns the source as a revision stores it.
func (s Source) Encode() []byte {
	// A struct of strings and maps of strings cannot fail to encode, and maps are written in order.
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return b
}

// DecodeSource parses what Encode returned.
func DecodeSource(data []byte) (Source, error) {
	var s Source
	if err := json.Unmarshal(data, &s); err != nil {
		return s, fmt.Errorf("decode a config revision: %w", err)
	}
	return s, nil
}

// StoredSource returns the source in a stored revision. Namespace and name are those of the object,
// whatever its data says: an administrator may have copied it from another namespace.
func StoredSource(stored *appsv1.ControllerRevision) (Source, error) {
	s, err := DecodeSource(stored.Data.Raw)
	s.Namespace, s.revision = stored.Namespace, stored.Name
	return s, err
}

// RevisionName returns the name of the revision: the config's name and a hash of the content, so
// that the same content always has the same name. How long deleted volumes are kept is not hashed:
// the present ConfigMap says it, and a change makes no revision. A revision that was copied from
// another namespace keeps its name.
func (s Source) RevisionName() string {
	if s.revision != "" {
		return s.revision
	}
	hashed := s
	hashed.Data = withoutTrash(s.Data)
	sum := sha256.Sum256(hashed.Encode())
	const maxName = 253 - 1 - 16
	name := strings.TrimRight(s.Name[:min(len(s.Name), maxName)], ".") // a cut may end in a dot
	return name + "-" + hex.EncodeToString(sum[:8])
}

// Named returns the source with the name of its revision, which otherwise is computed whenever it
// is asked for. Change nothing in it after that.
func (s Source) Named() Source {
	s.revision = s.RevisionName()
	return s
}

// Revision returns the revision's "namespace/name", as Jobs and PVs carry it.
func (s Source) Revision() string { return s.Namespace + "/" + s.RevisionName() }

// ClassLabel returns the label value of a class, whose name may be longer than a label value may
// be.
func ClassLabel(class string) string {
	sum := sha256.Sum256([]byte(class))
	return hex.EncodeToString(sum[:8])
}

// NameOfRevision returns the name of a revision's config, by the revision's name. It returns the
// beginning of a very long one.
func NameOfRevision(revision string) string {
	return revision[:max(strings.LastIndexByte(revision, '-'), 0)]
}
