package patch

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Patcher is the part of a typed client that patches.
type Patcher[T metav1.Object] interface {
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
}

// FieldManager is the owner of the fields that the dispatcher writes.
const FieldManager = "flex-dispatcher"

// Fields is a part of an object, as a merge patch sets it. A nil removes a field.
type Fields = map[string]any

// Merge writes on an object as it was observed. The API server answers with a conflict if the
// object has changed since, or if it is another one of the same name. It is an error if the object
// does not show what was written.
func Merge[T metav1.Object](ctx context.Context, client Patcher[T], obj T, change Fields, subresources ...string) (T, error) {
	return merge(obj, change, func(body []byte) (T, error) {
		return client.Patch(ctx, obj.GetName(), types.MergePatchType, body, metav1.PatchOptions{FieldManager: FieldManager}, subresources...)
	})
}

// MergeElements is Merge by a strategic merge patch, which changes single elements of lists.
func MergeElements[T metav1.Object](ctx context.Context, client Patcher[T], obj T, change Fields, subresources ...string) (T, error) {
	return merge(obj, change, func(body []byte) (T, error) {
		return client.Patch(ctx, obj.GetName(), types.StrategicMergePatchType, body, metav1.PatchOptions{FieldManager: FieldManager}, subresources...)
	})
}

func merge[T metav1.Object](obj T, change Fields, send func(body []byte) (T, error)) (T, error) {
	body, err := encode(obj, change, obj.GetResourceVersion())
	if err != nil {
		return obj, err
	}
	answer, err := send(body)
	if err != nil {
		return answer, err
	}
	missing, err := missingAfter(obj, answer, body)
	if err != nil {
		return answer, err
	}
	return answer, UnlessMissing(missing)
}

// Strategic writes on an object whatever has changed since it was observed, but not on another one
// of the same name.
func Strategic[T metav1.Object](ctx context.Context, client Patcher[T], obj T, change Fields) (T, error) {
	body, err := encode(obj, change, "")
	if err != nil {
		return obj, err
	}
	return client.Patch(ctx, obj.GetName(), types.StrategicMergePatchType, body, metav1.PatchOptions{FieldManager: FieldManager})
}

// encode returns a patch of one object, of one version of it if that is not empty.
func encode(obj metav1.Object, change Fields, version string) ([]byte, error) {
	metadata, _ := change["metadata"].(Fields)
	if metadata == nil {
		metadata = Fields{}
	}
	metadata["uid"] = obj.GetUID()
	if version != "" {
		metadata["resourceVersion"] = version
	}
	change["metadata"] = metadata
	body, err := json.Marshal(change)
	if err != nil {
		return nil, fmt.Errorf("encode a patch of %s: %w", obj.GetName(), err)
	}
	return body, nil
}

// Annotate returns a merge patch of annotations.
func Annotate[T any](annotations map[string]T) Fields {
	return Fields{"metadata": Fields{"annotations": annotations}}
}

// WithoutFinalizer returns the patch that removes a finalizer from an object.
func WithoutFinalizer(obj metav1.Object, finalizer string) Fields {
	kept := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return f == finalizer })
	return Fields{"metadata": Fields{"finalizers": kept}}
}

// DropFinalizer returns the strategic merge patch that removes a finalizer of any version of an
// object, whatever others it has by now.
func DropFinalizer(finalizer string) Fields {
	return Fields{"metadata": Fields{"$deleteFromPrimitiveList/finalizers": []string{finalizer}}}
}

// DropGate returns the strategic merge patch that removes a scheduling gate of a pod, and no other
// controller's.
func DropGate(gate string) Fields {
	return Fields{"spec": Fields{"schedulingGates": []any{Fields{"$patch": "delete", "name": gate}}}}
}

// Untracked adds to a patch that the API server no longer tracks who has set which field of the
// object. It forgets that, and later updates compute nothing of it (Update of skipNonAppliedManager
// in apimachinery's util/managedfields/internal). It is for objects that only controllers write,
// and none by server-side apply.
func Untracked(change Fields) Fields {
	metadata, _ := change["metadata"].(Fields)
	if metadata == nil {
		metadata = Fields{}
		change["metadata"] = metadata
	}
	metadata["managedFields"] = []Fields{{}}
	return change
}
