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

// leftoverError is a failure whose rollback failed as well. Something was made, so that an exit
// code which promises "nothing was made" would be wrong.
type leftoverError struct{ cause, err error }

// Error returns the failure first.
func (l *leftoverError) Error() string { return l.cause.Error() + "; " + l.err.Error() }

// Unwrap returns both errors.
func (l *leftoverError) Unwrap() []error { return []error{l.cause, l.err} }

// exitCode returns the exit code of contract/exit.go for the error.
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
	if u, ok := errors.AsType[*mapper.UnsupportedError](err); ok {
		return unsupportedCode(u)
	}
	if e, ok := errors.AsType[*volume.Error](err); ok {
		return storageCode(e.Kind)
	}
	if isRefusedByKubernetes(err) {
		return contract.ExitConfig
	}
	return contract.ExitTempFail
}

func unsupportedCode(u *mapper.UnsupportedError) int {
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

// isRefusedByKubernetes reports whether the API server forbids the request or rejects the object.
func isRefusedByKubernetes(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err)
}

// isLasting reports whether the claim is not tried again soon after this exit code.
func isLasting(code int) bool {
	switch code {
	case contract.ExitUsage, contract.ExitConfig, contract.ExitBadRequest, contract.ExitCapacity, contract.ExitNoPerm:
		return true
	default:
		return false
	}
}
