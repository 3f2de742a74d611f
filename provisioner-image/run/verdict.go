package run

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/mapper"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// leftoverError is a failure whose roll back failed too, so that something was made after all: the codes
// that promise "nothing was made" would be a lie.
type leftoverError struct{ cause, err error }

// Error names the failure first.
func (l *leftoverError) Error() string { return l.cause.Error() + "; " + l.err.Error() }

// Unwrap gives both.
func (l *leftoverError) Unwrap() []error { return []error{l.cause, l.err} }

// exitCode says by contract/exit.go how the run ended.
func exitCode(err error) int {
	if err == nil {
		return contract.ExitDone
	}
	if _, ok := errors.AsType[*leftoverError](err); ok || errors.Is(err, context.Canceled) {
		return contract.ExitTempFail
	}
	if f, ok := errors.AsType[*input.Error](err); ok {
		return f.Code
	}
	if u, ok := errors.AsType[*mapper.UnfitError](err); ok {
		return unfitCode(u)
	}
	if e, ok := errors.AsType[*volume.Error](err); ok {
		return storageCode(e.Kind)
	}
	if kubeRefuses(err) {
		return contract.ExitConfig
	}
	return contract.ExitTempFail
}

func unfitCode(u *mapper.UnfitError) int {
	if u.Claim {
		return contract.ExitBadRequest
	}
	return contract.ExitConfig
}

func storageCode(kind volume.Kind) int {
	switch kind {
	case volume.Unavailable:
		return contract.ExitUnavailable
	case volume.Denied:
		return contract.ExitNoPerm
	case volume.Full:
		return contract.ExitCapacity
	case volume.Misconfigured:
		return contract.ExitConfig
	case volume.Unsuitable:
		return contract.ExitBadRequest
	case volume.Gone, volume.Busy:
		return contract.ExitTempFail
	default:
		return contract.ExitTempFail
	}
}

// kubeRefuses tells whether Kubernetes does not let us, or does not take what we write.
func kubeRefuses(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
}

// lasting tells whether a verdict is not tried again soon.
func lasting(code int) bool {
	switch code {
	case contract.ExitUsage, contract.ExitConfig, contract.ExitBadRequest, contract.ExitCapacity, contract.ExitNoPerm:
		return true
	default:
		return false
	}
}
