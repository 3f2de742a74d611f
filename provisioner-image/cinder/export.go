package cinder

import (
	"context"
	"errors"
	"fmt"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Export reserves the volume, unless an earlier run did, and exports it to the client.
func (b *Backend) Export(
	ctx context.Context, v volume.Volume, a volume.Access,
) (volume.Connection, volume.Access, error) {
	if a.Recorded {
		c, err := b.reach(ctx, v.ID, a)
		return c, a, err
	}
	switch a.Method {
	case Attachments:
		return b.attach(ctx, v, a)
	case Reserve:
		return b.initialize(ctx, v, a)
	default:
		return b.exportByAnswer(ctx, v, a)
	}
}

// exportByAnswer exports the volume by the method that this Cinder supports. Only its answer to a
// request for an attachment says whether it makes one without a server. What an earlier run has
// reserved or attached keeps its method.
func (b *Backend) exportByAnswer(
	ctx context.Context, v volume.Volume, a volume.Access,
) (volume.Connection, volume.Access, error) {
	a, err := b.resolve(ctx, a)
	if err == nil && a.Method == Attachments && (v.Status == attaching || v.Status == inUse) {
		a.Method, err = b.methodOf(ctx, v)
	}
	if err != nil {
		return volume.Connection{}, a, err
	}
	if a.Method == Reserve {
		return b.initialize(ctx, v, a)
	}
	c, held, err := b.attach(ctx, v, a)
	if !errors.Is(err, errNeedsServer) {
		return c, held, err
	}
	if v, err = b.cinder.Get(ctx, v.ID); err != nil {
		return volume.Connection{}, a, err
	}
	a.Method = Reserve
	return b.initialize(ctx, v, a)
}

// methodOf returns by which method a volume was reserved or attached: the older one makes no
// attachment, or one that exports nothing.
func (b *Backend) methodOf(ctx context.Context, v volume.Volume) (volume.Method, error) {
	ours, err := b.ownAttachments(ctx, v)
	if err == nil && (len(ours) == 0 || areOfHost(ours)) {
		return Reserve, nil
	}
	return Attachments, err
}

// reach returns the connection of a volume that an earlier run exported.
func (b *Backend) reach(ctx context.Context, id string, a volume.Access) (volume.Connection, error) {
	if a.Method != Attachments {
		return b.cinder.Initialize(ctx, id, a.Client)
	}
	all, err := b.cinder.Attachments(ctx, id)
	if err != nil {
		return volume.Connection{}, err
	}
	for _, one := range all {
		if one.ID == a.ID && !one.Connection.IsEmpty() {
			return one.Connection, nil
		}
	}
	return volume.Connection{}, &volume.Error{
		Kind:  volume.Busy,
		Doing: "reach volume " + id,
		Said:  fmt.Sprintf("its attachment %s no longer exists, or does not export it", a.ID),
	}
}

// resolve replaces Auto by Attachments where Cinder can complete and delete them, whether or not it
// makes them.
func (b *Backend) resolve(ctx context.Context, a volume.Access) (volume.Access, error) {
	if a.Method == Attachments || a.Method == Reserve {
		return a, nil
	}
	known, err := b.knowsAttachments(ctx)
	if err != nil {
		return a, err
	}
	a.Method = Reserve
	if known {
		a.Method = Attachments
	}
	return a, nil
}

// knowsAttachments asks Cinder once for all volumes of a run.
func (b *Backend) knowsAttachments(ctx context.Context) (bool, error) {
	b.asking.Lock()
	defer b.asking.Unlock()
	if b.knows == nil {
		known, err := b.cinder.KnowsAttachments(ctx)
		if err != nil {
			return false, err
		}
		b.knows = &known
	}
	return *b.knows, nil
}

// reserve gets the volume again when Cinder refuses or does not answer: an overlapping run, or this
// very request, may have reserved it for the same claim. A server may have, too.
func (b *Backend) reserve(ctx context.Context, v volume.Volume) error {
	err := b.cinder.Reserve(ctx, v.ID)
	if err == nil {
		return nil
	}
	if now, getErr := b.cinder.Get(ctx, v.ID); getErr != nil || now.Status != attaching {
		return err
	}
	return b.checkConnected(ctx, v)
}
