package cinder

import (
	"cmp"
	"context"
	"fmt"
	"sync"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/place"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Backend is Cinder as a storage of the domain. A method sends as many requests as Cinder needs for
// one step of the domain, and waits until Cinder has done the step.
type Backend struct {
	cinder *Cinder
	wait   volume.Wait
	// worked is how long Cinder was at work the last time (time.Duration), by the status meanwhile.
	worked sync.Map

	// knows is whether this Cinder can complete attachments. It is nil until Cinder was asked.
	asking sync.Mutex
	knows  *bool
}

var _ volume.Backend = (*Backend)(nil)

// NewBackend returns a Backend that uses a Cinder. It calls wait between two requests for the
// status of a volume.
func NewBackend(cinder *Cinder, wait volume.Wait) *Backend {
	return &Backend{cinder: cinder, wait: wait}
}

// List lists the volumes of a claim, or else of a cluster.
func (b *Backend) List(ctx context.Context, f volume.Filter) ([]volume.Volume, error) {
	if f.UID != "" {
		return b.cinder.Find(ctx, f.UID)
	}
	return b.cinder.List(ctx, f.Cluster)
}

// Place returns which Cinder answers, and for which project.
func (b *Backend) Place() volume.Place { return place.Of(b.cinder.api) }

// ListFirst lists volumes of a cluster.
func (b *Backend) ListFirst(ctx context.Context, clusterUID string, most int) ([]volume.Volume, bool, error) {
	return b.cinder.ListFirst(ctx, clusterUID, most)
}

// Get asks for one volume.
func (b *Backend) Get(ctx context.Context, id string) (volume.Volume, error) {
	return b.cinder.Get(ctx, id)
}

// Create requests a new volume. Cinder makes it later.
func (b *Backend) Create(ctx context.Context, spec volume.Spec) (volume.Volume, error) {
	v, err := b.cinder.Create(ctx, spec)
	if err != nil && spec.Source.VolumeID != "" {
		err = cmp.Or(b.whyNotCloned(ctx, spec.Source.VolumeID), err)
	}
	return v, err
}

// whyNotCloned returns an error if the source of a refused clone is only reserved, as older images
// left it, and nil otherwise. Cinder clones volumes that are available or in-use, in every release,
// and that will not change by itself.
func (b *Backend) whyNotCloned(ctx context.Context, id string) error {
	// If it cannot be found out, the refusal itself is the error.
	if source, err := b.cinder.Get(ctx, id); err == nil && isReserved(source) {
		return notCloned(source)
	}
	return nil
}

func notCloned(source volume.Volume) error {
	return &volume.Error{
		Kind:  volume.Unsuitable,
		Doing: "clone volume " + source.ID,
		Said: fmt.Sprintf("the status of the source is %q, and Cinder clones only volumes that are available or in-use. Older images left volumes of"+
			" attach-api reserve so. Remedy: grow the source, which attaches its volume, or clone a claim that a newer image has provisioned", source.Status),
	}
}

// Ready waits until Cinder has made the volume. It fails at once when Cinder has given the volume
// up.
func (b *Backend) Ready(ctx context.Context, v volume.Volume, _ volume.Access) (volume.Volume, error) {
	v, err := b.untilIdle(ctx, v)
	switch {
	case err != nil:
		return v, err
	case v.State == volume.Failed:
		return v, b.cinder.FailureOf(ctx, v)
	case v.Status == available || isReserved(v) || v.Status == inUse:
		// It may be in use by an attachment of ours, or Export will say by whose.
		return v, nil
	default:
		return v, notFree(v)
	}
}

func notFree(v volume.Volume) error {
	return &volume.Error{
		Kind:  volume.Busy,
		Doing: "use volume " + v.ID,
		Said:  fmt.Sprintf("its status is %q; it must be available, or attached by this provisioner", v.Status),
	}
}

// Release removes the volume's export, and returns the volume as it is then.
func (b *Backend) Release(ctx context.Context, v volume.Volume, a volume.Access) (volume.Volume, error) {
	v, err := b.reclaim(ctx, v, a)
	if err == nil {
		v, err = b.released(ctx, v)
	}
	return v, err
}

// Mark replaces the volume's metadata when Cinder is no longer working on it: what a driver returns of a
// new volume may hold the metadata that it had before.
func (b *Backend) Mark(ctx context.Context, v volume.Volume, metadata map[string]string) (volume.Volume, error) {
	v, err := b.untilIdle(ctx, v)
	if err == nil {
		err = b.cinder.SetMetadata(ctx, v.ID, metadata)
	}
	if err == nil {
		v.Metadata = metadata
	}
	return v, err
}
