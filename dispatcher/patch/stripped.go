package patch

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// strippedError is the error of a write that the API server has answered without one, although the
// object does not have what was written. Without it nothing would follow: an object that has not
// changed brings no watch event.
type strippedError struct{ missing []string }

func (e *strippedError) Error() string {
	return "the API server accepted the write, but a mutating webhook or policy changed it. Missing: " + strings.Join(e.missing, ", ")
}

// IsStripped reports whether a write was accepted and changed on its way, so that the object does
// not show it.
func IsStripped(err error) bool {
	_, stripped := errors.AsType[*strippedError](err)
	return stripped
}

// UnlessMissing returns an error if anything of a write is missing.
func UnlessMissing(missing []string) error {
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
			removed = append(removed, "the removal of the annotation "+key)
		}
	}
	slices.Sort(removed)
	out := append(MissingKeys("annotation", set, answer.GetAnnotations()), removed...)
	if sent.Metadata.Finalizers != nil {
		out = append(out, MissingFinalizers(old.GetFinalizers(), sent.Metadata.Finalizers, answer.GetFinalizers())...)
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

// MissingKeys returns which entries of a map are missing, or have another value.
func MissingKeys(what string, want, got map[string]string) []string {
	var out []string
	for key, value := range want {
		if is, found := got[key]; !found || is != value {
			out = append(out, "the "+what+" "+key)
		}
	}
	slices.Sort(out)
	return out
}

// MissingFinalizers returns which finalizers were not added, and which were not removed. Those that
// another client or a webhook has added are none of ours.
func MissingFinalizers(old, want, got []string) []string {
	var out []string
	for _, f := range want {
		if !slices.Contains(got, f) {
			out = append(out, "the finalizer "+f)
		}
	}
	for _, f := range old {
		if !slices.Contains(want, f) && slices.Contains(got, f) {
			out = append(out, "the removal of the finalizer "+f)
		}
	}
	return out
}
