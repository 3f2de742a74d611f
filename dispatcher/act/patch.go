package act

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Patcher is the part of a typed client that mergePatch needs.
type Patcher[T metav1.Object] interface {
	Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error)
}

// fields is a part of an object, as a merge patch sets it. A nil removes a field.
type fields = map[string]any

// mergePatch writes on an object as it was observed. The API server answers with a conflict if the object has changed
// since, or if it is another one of the same name. It is an error if the object does not show what was written.
func mergePatch[T metav1.Object](ctx context.Context, client Patcher[T], obj T, patch fields, subresources ...string) (T, error) {
	metadata, _ := patch["metadata"].(fields)
	if metadata == nil {
		metadata = fields{}
	}
	metadata["resourceVersion"] = obj.GetResourceVersion()
	patch["metadata"] = metadata
	answer, body, err := patchSame(ctx, client, obj, types.MergePatchType, patch, subresources...)
	if err != nil {
		return answer, err
	}
	missing, err := missingAfter(obj, answer, body)
	if err != nil {
		return answer, err
	}
	return answer, unlessMissing(missing)
}

// patchSame writes on an object whatever has changed since it was observed, but not on another one of the same name. It returns what was sent, too.
func patchSame[T metav1.Object](ctx context.Context, client Patcher[T], obj T, kind types.PatchType, patch fields, subresources ...string) (answer T, body []byte, err error) {
	metadata, _ := patch["metadata"].(fields)
	if metadata == nil {
		metadata = fields{}
	}
	metadata["uid"] = obj.GetUID()
	patch["metadata"] = metadata
	if body, err = json.Marshal(patch); err != nil {
		return obj, nil, fmt.Errorf("encode a patch of %s: %w", obj.GetName(), err)
	}
	answer, err = client.Patch(ctx, obj.GetName(), kind, body, metav1.PatchOptions{FieldManager: fieldManager}, subresources...)
	return answer, body, err
}

// patchObserved is mergePatch, and keeps the write in mind until the caches show it.
func patchObserved[T metav1.Object](ctx context.Context, w *Writes, client Patcher[T], obj T, patch fields, subresources ...string) error {
	answer, err := mergePatch(ctx, client, obj, patch, subresources...)
	if err == nil {
		w.Wrote(answer)
	}
	return err
}

// annotate returns a merge patch of annotations.
func annotate[T any](annotations map[string]T) fields {
	return fields{"metadata": fields{"annotations": annotations}}
}

// outcome is how a write ended that was not refused for another reason.
type outcome int

const (
	written outcome = iota
	changed         // the object has changed since it was observed: the watch enqueues the UID
	deleted         // the object no longer exists: the watch enqueues the UID
)

// outcomeOf returns whether a write met a conflict or a missing object. It returns every other error, with what was
// tried.
func outcomeOf(err error, format string, args ...any) (outcome, error) {
	switch {
	case err == nil:
		return written, nil
	case apierrors.IsConflict(err):
		return changed, nil
	case apierrors.IsNotFound(err):
		return deleted, nil
	default:
		return written, fmt.Errorf(format+": %w", append(args, err)...)
	}
}

// IsRefused reports whether the API server refused a write and would refuse it again: by an admission webhook or
// policy, by validation, or by RBAC. A webhook that gives no reason answers 400. One that takes away what was written
// refuses it as well.
func IsRefused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || IsStripped(err)
}

// withoutFinalizer returns the patch that removes a finalizer from an object.
func withoutFinalizer(obj metav1.Object, finalizer string) fields {
	kept := slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return f == finalizer })
	return fields{"metadata": fields{"finalizers": kept}}
}

// RemoveFinalizer removes a finalizer from an object as it was read.
func RemoveFinalizer[T metav1.Object](ctx context.Context, client Patcher[T], obj T, finalizer string) error {
	_, err := mergePatch(ctx, client, obj, withoutFinalizer(obj, finalizer))
	return err
}
