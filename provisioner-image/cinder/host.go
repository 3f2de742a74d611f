package cinder

import (
	"context"
	"slices"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/body"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// byHost exports a volume by the older workflow (reserve, initialize_connection, attach).
type byHost struct{ *Backend }

// hold completes the workflow from where an earlier run left it. It returns the export of a volume
// that is attached to this image's host already.
func (b byHost) hold(
	ctx context.Context, v volume.Volume, a volume.Access,
) (volume.Connection, volume.Access, error) {
	v, err := b.lock(ctx, v, a)
	if err != nil {
		return volume.Connection{}, a, err
	}
	c, err := b.cinder.Initialize(ctx, v.ID, a.Client)
	// In a status of another kind Cinder attaches the volume as well, and ends what it is doing
	// with it.
	if err == nil && (v.Status == available || isReserved(v)) {
		err = b.attachHost(ctx, v, a)
	}
	return c, a, err
}

// reach requests the connection once more.
func (b byHost) reach(ctx context.Context, id string, a volume.Access) (volume.Connection, error) {
	return b.cinder.Initialize(ctx, id, a.Client)
}

// lock reserves the volume, unless an earlier run did or this image's host has attached it, and
// returns it as it was before. It first deletes what a killed Cinder has left of an attachment:
// os-attach would create a second one.
func (b byHost) lock(ctx context.Context, v volume.Volume, a volume.Access) (_ volume.Volume, err error) {
	switch v.Status {
	case attaching:
		if v, err = b.endUnfinished(ctx, v); err == nil {
			err = b.checkConnected(ctx, v)
		}
	case reserved:
		v, err = b.reset(ctx, v)
	case inUse:
		err = b.checkHost(ctx, v, a)
	}
	if err == nil && (v.Status == available || v.Status == reserved) {
		err = b.reserve(ctx, v)
	}
	return v, err
}

// reserve gets the volume again when Cinder refuses or does not answer: an overlapping run, or this
// very request, may have reserved it for the same claim. A server may have, too.
func (b byHost) reserve(ctx context.Context, v volume.Volume) error {
	err := b.cinder.Reserve(ctx, v.ID)
	if err == nil {
		return nil
	}
	if now, getErr := b.cinder.Get(ctx, v.ID); getErr != nil || now.Status != attaching {
		return err
	}
	return b.checkConnected(ctx, v)
}

// checkConnected refuses a volume that a server has, or that an attachment exports: the older
// workflow makes none that does.
func (b byHost) checkConnected(ctx context.Context, v volume.Volume) error {
	all, err := b.knownAttachments(ctx, v)
	if err == nil && slices.ContainsFunc(all, isConnected) {
		err = inUseBy(v, "another client")
	}
	return err
}

// attachHost ends the older workflow, after which the volume is in use: Cinder clones no volume
// that is only reserved. It gets the volume again when Cinder refuses or does not answer: an
// overlapping run, or this very request, may have attached it.
func (b byHost) attachHost(ctx context.Context, v volume.Volume, a volume.Access) error {
	err := b.cinder.AttachHost(ctx, v, a.Client.Host)
	if err == nil {
		return nil
	}
	if ours, getErr := b.hostAttachments(ctx, v, a); getErr == nil && len(ours) > 0 {
		return nil
	}
	return err
}

// checkHost refuses a volume in use that this image's host has not attached.
func (b byHost) checkHost(ctx context.Context, v volume.Volume, a volume.Access) error {
	ours, err := b.hostAttachments(ctx, v, a)
	if err == nil && len(ours) == 0 {
		err = inUseBy(v, "an unknown client")
	}
	return err
}

// hostAttachments returns the IDs of the attachments to this image's host, as the volume itself
// shows them: every Cinder does so. It is an error if the volume is attached to anything else.
// Cinder tells the host to administrators only. Where it names none, an attachment is one of ours
// by the mount point that it was made with.
func (b byHost) hostAttachments(ctx context.Context, v volume.Volume, a volume.Access) ([]string, error) {
	all, err := b.cinder.shownAttachments(ctx, v.ID)
	if err != nil {
		return nil, err
	}
	var ours []string
	for _, one := range all {
		switch {
		case one.ServerID != "":
			return nil, inUseBy(v, "server "+one.ServerID)
		case one.HostName != "" && !volume.IsHost(one.HostName, a.Client.Host):
			return nil, inUseBy(v, "host "+one.HostName)
		case one.HostName == "" && one.Device != body.MountPoint:
			return nil, inUseBy(v, "another client")
		}
		ours = append(ours, one.AttachmentID)
	}
	return ours, nil
}

// free removes the export, and what keeps the volume for this image's host: an attachment, or a
// reservation by a run that was killed or by an older image. A failure leaves the attachment as it
// was. Repeating it does no harm.
func (b byHost) free(ctx context.Context, v volume.Volume, a volume.Access) (volume.Volume, error) {
	ours, err := b.hostAttachments(ctx, v, a)
	if err != nil {
		return v, err
	}
	mayBeExported := len(ours) > 0 || v.Status == attaching || v.Status == errorAttaching
	// Of two attachments Cinder terminates neither.
	if v, err = b.endUnfinished(ctx, v); err != nil {
		return v, err
	}
	if !mayBeExported {
		return b.unreserve(ctx, v, a)
	}
	if err := b.cinder.Terminate(ctx, v.ID, a.Client); err != nil {
		return v, err
	}
	if v, err = b.detachHost(ctx, v, ours); err != nil {
		return v, err
	}
	return v, b.cinder.Unreserve(ctx, v.ID)
}

// detachHost ends the attachments to the host, and returns the volume as it is then.
func (b byHost) detachHost(ctx context.Context, v volume.Volume, ours []string) (volume.Volume, error) {
	if len(ours) == 0 && v.Status == errorAttaching {
		ours = []string{""} // Cinder shows no attachment that failed
	}
	for _, id := range ours {
		if err := b.cinder.DetachHost(ctx, v.ID, id); err != nil {
			return v, err
		}
	}
	if len(ours) == 0 {
		return v, nil
	}
	return b.afterDetach(ctx, v)
}
