package act

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// strippedError is the error of a write that the API server has answered without one, although the object does not
// have what was written. Without it nothing would follow: an object that has not changed brings no watch event.
type strippedError struct{ missing []string }

func (e *strippedError) Error() string {
	return "the API server accepted it, but the object does not show " + strings.Join(e.missing, ", ") + ": a mutating webhook or policy changes what is written"
}

// IsStripped reports whether a write was accepted and changed on its way, so that the object does not show it.
func IsStripped(err error) bool {
	_, stripped := errors.AsType[*strippedError](err)
	return stripped
}

// unlessMissing returns an error if anything of a write is missing.
func unlessMissing(missing []string) error {
	if len(missing) == 0 {
		return nil
	}
	return &strippedError{missing}
}

// sentPatch is the part of a merge patch that is compared with the answer.
type sentPatch struct {
	Metadata struct {
		Annotations map[string]*string
		Finalizers  []string
	}
	Spec struct {
		Capacity map[corev1.ResourceName]resource.Quantity
	}
}

// missingAfter returns what of a merge patch the API server's answer does not show.
func missingAfter(old, answer metav1.Object, patch []byte) ([]string, error) {
	var sent sentPatch
	if err := json.Unmarshal(patch, &sent); err != nil {
		return nil, fmt.Errorf("read the patch of %s: %w", old.GetName(), err)
	}
	set, removed := map[string]string{}, []string{}
	for key, value := range sent.Metadata.Annotations {
		if value != nil {
			set[key] = *value
		} else if _, found := answer.GetAnnotations()[key]; found {
			removed = append(removed, "that the annotation "+key+" was removed")
		}
	}
	slices.Sort(removed)
	out := append(missingKeys("annotation", set, answer.GetAnnotations()), removed...)
	if sent.Metadata.Finalizers != nil {
		out = append(out, missingFinalizers(old.GetFinalizers(), sent.Metadata.Finalizers, answer.GetFinalizers())...)
	}
	if pv, isPV := answer.(*corev1.PersistentVolume); isPV {
		for name, size := range sent.Spec.Capacity {
			if is := pv.Spec.Capacity[name]; is.Cmp(size) != 0 {
				out = append(out, "the capacity "+size.String())
			}
		}
	}
	return out, nil
}

// missingKeys returns which entries of a map are missing, or have another value.
func missingKeys(what string, want, got map[string]string) []string {
	var out []string
	for key, value := range want {
		if is, found := got[key]; !found || is != value {
			out = append(out, "the "+what+" "+key)
		}
	}
	slices.Sort(out)
	return out
}

// missingFinalizers returns which finalizers were not added, and which were not removed. Those that another client or a
// webhook has added are none of ours.
func missingFinalizers(old, want, got []string) []string {
	var out []string
	for _, f := range want {
		if !slices.Contains(got, f) {
			out = append(out, "the finalizer "+f)
		}
	}
	for _, f := range old {
		if !slices.Contains(want, f) && slices.Contains(got, f) {
			out = append(out, "that the finalizer "+f+" was removed")
		}
	}
	return out
}

// missingOfJob returns what of a Job was not stored. Without its labels the Job would not be seen, without its
// annotations it would be no record, and without its finalizer it could vanish with what it has made.
func missingOfJob(sent, stored *batchv1.Job) []string {
	return slices.Concat(
		missingFinalizers(nil, sent.Finalizers, stored.Finalizers),
		missingKeys("label", ownKeys(sent.Labels), stored.Labels),
		missingKeys("annotation", ownKeys(sent.Annotations), stored.Annotations),
		missingKeys("pods' label", ownKeys(sent.Spec.Template.Labels), stored.Spec.Template.Labels),
		missingKeys("pods' annotation", ownKeys(sent.Spec.Template.Annotations), stored.Spec.Template.Annotations),
	)
}

// ownKeys returns the entries that are the dispatcher's. What a config's pod-template adds may be changed by others.
func ownKeys(all map[string]string) map[string]string {
	own := maps.Clone(all)
	maps.DeleteFunc(own, func(key, _ string) bool {
		return key != config.LabelManagedBy && !strings.Contains(key, contract.Domain)
	})
	return own
}

// cancelIfStripped deletes a Job that was just created if it lacks something that was sent, and returns that as an
// error. Nothing of the claim's may be made without a record of it. Nothing has run yet, and perhaps no watch will show the
// Job, so its finalizer is removed first.
func (a *Actor) cancelIfStripped(ctx context.Context, sent, stored *batchv1.Job) error {
	err := unlessMissing(missingOfJob(sent, stored))
	if err == nil {
		return nil
	}
	patch := withoutFinalizer(stored, jobs.FinalizerRecord)
	patch["metadata"].(fields)["uid"] = stored.UID // of any version: the Job controller has seen it by now
	b, encoding := json.Marshal(patch)
	_, released := a.Client.BatchV1().Jobs(stored.Namespace).Patch(ctx, stored.Name, types.MergePatchType, b, metav1.PatchOptions{FieldManager: fieldManager})
	if apierrors.IsNotFound(released) {
		released = nil
	}
	return errors.Join(fmt.Errorf("%w; it is deleted before it has run", err), encoding, released, a.cancel(ctx, stored))
}
