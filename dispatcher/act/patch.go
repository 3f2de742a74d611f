package act

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
)

// noted keeps a write in mind until the caches show it. It returns the error of one that has failed.
func (a *Actor) noted(answer metav1.Object, err error) error {
	if err == nil {
		a.Writes.Wrote(answer)
	}
	return err
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
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || patch.IsStripped(err)
}
