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

// mergePatch writes on an object as it was observed: on another of its name, or on one that has changed since, the API server refuses it
// with a conflict.
func mergePatch[T metav1.Object](ctx context.Context, client Patcher[T], obj T, patch fields, subresources ...string) error {
	metadata, _ := patch["metadata"].(fields)
	if metadata == nil {
		metadata = fields{}
	}
	metadata["uid"], metadata["resourceVersion"] = obj.GetUID(), obj.GetResourceVersion()
	patch["metadata"] = metadata
	b, err := json.Marshal(patch)
	if err != nil {
		return fmt.Errorf("encode a patch of %s: %w", obj.GetName(), err)
	}
	_, err = client.Patch(ctx, obj.GetName(), types.MergePatchType, b, metav1.PatchOptions{FieldManager: fieldManager}, subresources...)
	return err
}

// annotate is a merge patch of annotations.
func annotate[T any](annotations map[string]T) fields {
	return fields{"metadata": fields{"annotations": annotations}}
}

// outcome is how a write ended, where it was not refused for another reason.
type outcome int

const (
	written outcome = iota
	changed         // the object has changed since it was observed: the watch brings it as it is now
	deleted            // the object does not exist any more: the watch says so, too
)

// outcomeOf reads a conflict and a missing object off an error. Every other error is returned, with what was tried.
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

// IsRefused reports whether the API server will not have a write, whoever asks again: by an admission webhook or policy, by validation,
// or by RBAC. A webhook that gives no reason answers 400.
func IsRefused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err)
}

func without(list []string, item string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(v string) bool { return v == item })
}

// withoutFinalizer is the patch that takes a finalizer off an object.
func withoutFinalizer(obj metav1.Object, finalizer string) fields {
	return fields{"metadata": fields{"finalizers": without(obj.GetFinalizers(), finalizer)}}
}

// RemoveFinalizer takes a finalizer off an object as it was read.
func RemoveFinalizer[T metav1.Object](ctx context.Context, client Patcher[T], obj T, finalizer string) error {
	return mergePatch(ctx, client, obj, withoutFinalizer(obj, finalizer))
}
