package patch

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Effect is how a write ended.
type Effect int

// The effects of a write.
const (
	Failed Effect = iota // with an error
	Written
	Changed // the object has changed since it was observed: the watch enqueues the UID
	Deleted // the object no longer exists: the watch enqueues the UID
)

// EffectOf returns whether a write met a conflict or a missing object. It returns every other
// error, with what was tried.
func EffectOf(err error, format string, args ...any) (Effect, error) {
	switch {
	case err == nil:
		return Written, nil
	case apierrors.IsConflict(err):
		return Changed, nil
	case apierrors.IsNotFound(err):
		return Deleted, nil
	default:
		return Failed, fmt.Errorf(format+": %w", append(args, err)...)
	}
}

// IsRefused reports whether the API server refused a write and would refuse it again: by an
// admission webhook or policy, by validation, or by RBAC. A webhook that gives no reason answers
// 400. One that takes away what was written refuses it as well.
func IsRefused(err error) bool {
	return apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || IsStripped(err)
}
