//go:build !linux

package box

import (
	"context"
	"errors"
)

// Main does nothing: only Linux has namespaces.
func Main() {}

// Box cannot be had.
type Box struct{}

// Open returns why there is none.
func Open() (*Box, error) {
	return nil, errors.New("only Linux runs a script without a container engine. Remedy: install podman or docker, and name the image for scripts by --script-image")
}

// Run is never called.
func (*Box) Run(context.Context, Spec) (End, error) { return End{}, nil }

// Close does nothing.
func (*Box) Close() error { return nil }
