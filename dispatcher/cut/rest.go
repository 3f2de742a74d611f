package cut

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

// Nearly all claims and PVs of a cluster are at rest, and nothing is read of most of them for months.
// The structs of Kubernetes for one claim and its PV have 1,100 bytes, empty ones too. So the caches
// hold what is at rest as a text, beside a part that many objects have in common.

// Resting is a claim or a PV at rest, as the caches hold it. It is never written to.
type Resting struct {
	common runtime.Object // a claim or a PV with what many others have, too: it is shared
	own    string         // the texts of its head, each with a separator after it, and what is encoded
}

// The texts of a head.
const (
	headNamespace = iota
	headName
	headUID
	headVersion
	headSource
	lengthOfHead
)

// separator is in none of them.
const separator = "\x00"

// commonOf are the annotations of which many objects have the same few values.
var commonOf = []string{
	contract.AnnAttempts, contract.AnnResult, contract.AnnExitCode, contract.AnnRevision, contract.AnnProvisionedBy,
}

// longestCommon is up to which size a common part is shared, in bytes.
const longestCommon = 1 << 10

// rest returns a claim or a PV that is at rest as a Resting, and any other object as it is.
func rest(obj any) any {
	switch o := obj.(type) {
	case *corev1.PersistentVolumeClaim:
		if o.Spec.VolumeName != "" && pvs.IsAtRestClaim(o) {
			return restingClaim(o)
		}
	case *corev1.PersistentVolume:
		if pvs.IsAtRest(o) {
			return restingPV(o)
		}
	}
	return obj
}

func restingClaim(o *corev1.PersistentVolumeClaim) any {
	own, common := &corev1.PersistentVolumeClaim{}, *o
	divide(&o.ObjectMeta, &own.ObjectMeta, &common.ObjectMeta)
	own.Spec.VolumeName, common.Spec.VolumeName = o.Spec.VolumeName, ""
	return resting(o, "", own, &common)
}

func restingPV(o *corev1.PersistentVolume) any {
	own, common := &corev1.PersistentVolume{Status: o.Status}, *o
	divide(&o.ObjectMeta, &own.ObjectMeta, &common.ObjectMeta)
	ownSpec(&own.Spec, &o.Spec)
	ownSpec(&common.Spec, &corev1.PersistentVolumeSpec{})
	common.Status = corev1.PersistentVolumeStatus{}
	return resting(o, pvs.SourceKey(o), own, &common)
}

// ownSpec copies what each PV has of its own.
func ownSpec(to, from *corev1.PersistentVolumeSpec) {
	to.PersistentVolumeSource, to.ClaimRef, to.NodeAffinity = from.PersistentVolumeSource, from.ClaimRef, from.NodeAffinity
}

// divide divides metadata into the object's own, but for its head, and those that many have.
func divide(all, own, common *metav1.ObjectMeta) {
	*own = *all
	own.Namespace, own.Name, own.UID, own.ResourceVersion, own.Finalizers = "", "", "", "", nil
	own.Annotations = maps.Clone(all.Annotations)
	maps.DeleteFunc(own.Annotations, func(key, _ string) bool { return slices.Contains(commonOf, key) })
	*common = metav1.ObjectMeta{Finalizers: all.Finalizers, Annotations: onlyKeys(all.Annotations, commonOf...)}
}

// encoded is an object of Kubernetes that can be encoded.
type encoded interface {
	runtime.Object
	metav1.Object
	Marshal() ([]byte, error)
}

// resting returns the object whose parts these are, or itself if it cannot be encoded.
func resting[T encoded](all T, source string, own, common T) any {
	head := strings.Join([]string{all.GetNamespace(), all.GetName(), string(all.GetUID()), all.GetResourceVersion(), source, ""}, separator)
	text, err := own.Marshal()
	key, err2 := common.Marshal()
	if err != nil || err2 != nil || strings.Count(head, separator) != lengthOfHead {
		return all
	}
	out := &Resting{common: common, own: head + string(text)}
	if len(key) <= longestCommon {
		out.common = share(common.GetObjectKind().GroupVersionKind().String()+string(key), common)
	}
	return out
}

// head returns a text of the head. After the last one comes what is encoded.
func (r *Resting) head(i int) string {
	text, rest, _ := strings.Cut(r.own, separator)
	for ; i > 0; i-- {
		text, rest, _ = strings.Cut(rest, separator)
	}
	return text
}

// GetNamespace returns the object's namespace.
func (r *Resting) GetNamespace() string { return r.head(headNamespace) }

// GetName returns the object's name.
func (r *Resting) GetName() string { return r.head(headName) }

// GetUID returns the object's UID.
func (r *Resting) GetUID() types.UID { return types.UID(r.head(headUID)) }

// GetObjectMeta returns what an informer reads of an object. An index keeps the name of the first
// version that it has seen, which must not keep the text of that.
func (r *Resting) GetObjectMeta() metav1.Object {
	return &metav1.ObjectMeta{Namespace: r.GetNamespace(), Name: strings.Clone(r.GetName()), UID: r.GetUID(), ResourceVersion: r.head(headVersion)}
}

// GetObjectKind returns no kind, as of any object that was decoded.
func (r *Resting) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject returns the object itself.
func (r *Resting) DeepCopyObject() runtime.Object { return r }

// wholes are the objects at rest that were read last. The indexes of one read it several times. Each may
// have contract.MaxFiles.
var wholes = lru.New(100)

// Whole returns the claim or the PV that is at rest, and any other object as it is. It must not be
// written to.
func Whole(obj any) any {
	r, ok := obj.(*Resting)
	if !ok {
		return obj
	}
	if known, ok := wholes.Get(r); ok {
		return known
	}
	whole := r.whole()
	wholes.Add(r, whole)
	return whole
}

func (r *Resting) whole() any {
	head := strings.SplitN(r.own, separator, lengthOfHead+1)
	text := []byte(head[lengthOfHead])
	switch common := r.common.(type) {
	case *corev1.PersistentVolumeClaim:
		own, out := corev1.PersistentVolumeClaim{}, *common
		decoded(own.Unmarshal(text))
		unite(&out.ObjectMeta, &own.ObjectMeta, head)
		out.Spec.VolumeName = own.Spec.VolumeName
		return &out
	case *corev1.PersistentVolume:
		own, out := corev1.PersistentVolume{}, *common
		decoded(own.Unmarshal(text))
		unite(&out.ObjectMeta, &own.ObjectMeta, head)
		ownSpec(&out.Spec, &own.Spec)
		out.Status = own.Status
		return &out
	default:
		panic(fmt.Sprintf("%T is never at rest", common))
	}
}

// decoded panics if what this process has encoded cannot be decoded.
func decoded(err error) {
	if err != nil {
		panic(err)
	}
}

// unite undoes divide.
func unite(common, own *metav1.ObjectMeta, head []string) {
	out := *own
	out.Namespace, out.Name, out.UID, out.ResourceVersion = head[headNamespace], head[headName], types.UID(head[headUID]), head[headVersion]
	out.Finalizers = common.Finalizers
	if out.Annotations == nil {
		out.Annotations = map[string]string{}
	}
	maps.Copy(out.Annotations, common.Annotations)
	*common = out
}

// SourceKey returns pvs.SourceKey of a PV that the caches hold.
func SourceKey(obj any) string {
	if r, ok := obj.(*Resting); ok {
		return r.head(headSource)
	}
	return pvs.SourceKey(obj.(*corev1.PersistentVolume))
}
