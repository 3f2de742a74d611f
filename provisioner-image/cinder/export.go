package cinder

import (
	"context"
	"errors"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// workflow is one of Cinder's two ways to export a volume. Each goes on from where an earlier run
// left the volume, and ends what the other one has left of it.
type workflow interface {
	// hold reserves the volume, unless an earlier run did, and exports it to the client.
	hold(ctx context.Context, v volume.Volume, a volume.Access) (volume.Connection, volume.Access, error)
	// reach returns the connection of a volume that an earlier run exported.
	reach(ctx context.Context, id string, a volume.Access) (volume.Connection, error)
	// free removes the export and the reservation, and returns the volume as it is then.
	free(ctx context.Context, v volume.Volume, a volume.Access) (volume.Volume, error)
}

// workflow returns that of a method.
func (b *Backend) workflow(m volume.Method) workflow {
	if m == Attachments {
		return byAttachment{b}
	}
	return byHost{b}
}

// Export reserves the volume, unless an earlier run did, and exports it to the client.
func (b *Backend) Export(
	ctx context.Context, v volume.Volume, a volume.Access,
) (volume.Connection, volume.Access, error) {
	switch {
	case a.Recorded:
		c, err := b.workflow(a.Method).reach(ctx, v.ID, a)
		return c, a, err
	case a.Method == Attachments || a.Method == Reserve:
		return b.workflow(a.Method).hold(ctx, v, a)
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
	c, held, err := b.workflow(a.Method).hold(ctx, v, a)
	if !errors.Is(err, errNeedsServer) {
		return c, held, err
	}
	if v, err = b.cinder.Get(ctx, v.ID); err != nil {
		return volume.Connection{}, a, err
	}
	a.Method = Reserve
	return b.workflow(a.Method).hold(ctx, v, a)
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

// release removes the export by the method that made it, and returns the volume as it is then.
func (b *Backend) release(ctx context.Context, v volume.Volume, a volume.Access) (volume.Volume, error) {
	if !mayBeExported(v) {
		return v, nil
	}
	a, err := b.resolve(ctx, a)
	if err != nil {
		return v, err
	}
	return b.workflow(a.Method).free(ctx, v, a)
}

// released returns the volume as it is after its export has ended, or an error if another client uses
// it. A volume that Cinder has given up counts as released.
func (b *Backend) released(ctx context.Context, v volume.Volume) (volume.Volume, error) {
	if v.Status == available || v.State == volume.Failed {
		return v, nil
	}
	v, err := b.afterDetach(ctx, v)
	if err == nil && v.Status != available {
		err = notFree(v)
	}
	return v, err
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
