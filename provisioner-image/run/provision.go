package run

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/mapper"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/pv"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// provision makes the volume, exports it and creates the PV. If the PV exists there is nothing left
// to do, since it is created last.
func (r *Runner) provision(ctx context.Context, task input.Task) (Report, error) {
	there, err := r.store.Get(ctx, task.PV.Name)
	if err != nil {
		return Report{}, err
	}
	if there != nil {
		r.log.InfoContext(ctx, "PV already exists", "pv", there.Name)
		return Report{}, pv.CheckOwner(there, task.Request.UID)
	}
	if err := r.findSource(ctx, &task); err != nil {
		return Report{}, err
	}
	if err := mapper.Check(want(task, "")); err != nil {
		return Report{}, err
	}
	former, err := r.findFormer(ctx, &task)
	if err != nil {
		return Report{}, err
	}
	made, err := r.create(ctx, task)
	if err != nil || former == nil {
		return Report{}, err
	}
	return Report{Message: whatDiffers(former, made)}, nil
}

// create makes the volume and publishes it. It returns the PV that exists then.
func (r *Runner) create(ctx context.Context, task input.Task) (*corev1.PersistentVolume, error) {
	v, left, err := r.keeper.Ensure(ctx, task.Volume)
	r.report(ctx, left)
	if err != nil {
		return nil, r.rollBack(ctx, task, v, err)
	}
	r.log.InfoContext(ctx, "Volume is ready", "volume", v.ID, "status", v.Status, "sizeGiB", v.SizeGiB, "zone", v.Zone)
	if !task.Volume.AllowsZone(v.Zone) {
		r.log.WarnContext(ctx, "Volume is in another zone than the nodes, which the class ignores", "zone", v.Zone, "nodes", task.Volume.Zones)
	}
	made, err := r.publish(ctx, task, v)
	if err != nil {
		return nil, r.rollBack(ctx, task, v, err)
	}
	return made, r.dropDuplicate(ctx, task, v, made)
}

// publish exports the volume and creates first the Secret and then the PV: a PV without its Secret
// would be taken for a finished provision. It returns the PV that exists then.
func (r *Runner) publish(ctx context.Context, task input.Task, v volume.Volume) (*corev1.PersistentVolume, error) {
	if err := want(task, v.ID).CheckVolume(v); err != nil {
		return nil, err
	}
	c, access, err := r.keeper.Export(ctx, v, task.Volume.Access)
	if err != nil {
		return nil, err
	}
	m, err := r.source(ctx, task, v.ID, c)
	if err != nil {
		return nil, err
	}
	switch {
	case task.InZone:
		pv.RestrictToZones(task.PV, v.Zone)
	case len(task.NodeZones) > 0:
		pv.RestrictToZones(task.PV, task.NodeZones...)
	}
	record := pv.Record{VolumeID: v.ID, Place: r.keeper.Place(), Access: access, Adopted: v.IsAdopted()}
	if from := task.Request.Source; from != nil {
		record.CloneOf = from.Namespace + "/" + from.Name
	}
	if m.Secret != nil {
		record.Secret = task.Secret
	}
	complete, err := pv.Build(task.PV, m.Source, v.SizeGiB, record)
	if err != nil {
		return nil, err
	}
	complete.Spec.MountOptions = m.MountOptions
	return r.store.Create(ctx, complete)
}

// source maps the connection and creates its Secret.
func (r *Runner) source(ctx context.Context, task input.Task, id string, c volume.Connection) (mapper.Mapping, error) {
	if required := mapper.Unenforced(c); required != "" {
		r.log.WarnContext(ctx, "Nodes do not enforce a limit of the volume type", "required", required)
	}
	m, err := mapper.Map(c, want(task, id))
	for _, warning := range m.Warnings {
		r.log.WarnContext(ctx, "The PersistentVolume does not use all paths that the storage offers", "warning", warning)
	}
	if err != nil || m.Secret == nil {
		return m, err
	}
	m.Secret.Labels = contract.SecretLabels(task.Request.UID, task.Request.Class)
	return m, r.store.PutSecret(ctx, m.Secret)
}

// dropDuplicate removes this run's volume if an overlapping run created the PV for another one.
// Both runs use the same name for the Secret, so that it is written again for the volume that is
// kept.
func (r *Runner) dropDuplicate(ctx context.Context, task input.Task, ours volume.Volume, made *corev1.PersistentVolume) error {
	if err := pv.CheckOwner(made, task.Request.UID); err != nil {
		return err
	}
	kept, err := pv.ReadRecord(made, pv.Record{Access: task.Volume.Access})
	if err != nil || kept.VolumeID == ours.ID {
		return err
	}
	r.log.WarnContext(ctx, "Another run created the PV first; deleting the volume of this run", "kept", kept.VolumeID, "removed", ours.ID)
	c, err := r.keeper.Reach(ctx, named(task, kept))
	if err != nil {
		return &leftoverError{cause: err, err: fmt.Errorf("volume %s of this run remains", ours.ID)} // a thief of the token may have written the PV
	}
	if _, err := r.source(ctx, task, kept.VolumeID, c); err != nil {
		return err
	}
	return r.keeper.Discard(ctx, ours, task.Volume.Access)
}

// rollBack removes what was made if the verdict is one after which the claim is not tried again
// soon. After any other verdict the next run finds it and continues.
func (r *Runner) rollBack(ctx context.Context, task input.Task, v volume.Volume, cause error) error {
	if v.ID == "" || isForAlone(task, cause) || !isLasting(exitCode(cause)) {
		return cause
	}
	r.log.WarnContext(ctx, "Rolling back", "volume", v.ID, "cause", cause)
	if err := r.removeUnlessPublished(ctx, task, v); err != nil {
		return &leftoverError{cause: cause, err: fmt.Errorf("roll back volume %s: %w", v.ID, err)}
	}
	return cause
}

// removeUnlessPublished removes the volume unless an overlapping run has created a PV in the
// meantime.
func (r *Runner) removeUnlessPublished(ctx context.Context, task input.Task, v volume.Volume) error {
	if err := r.checkNoPV(ctx, task.PV); err != nil {
		return err
	}
	_, err := r.remove(ctx, task, removal{id: v.ID, undo: true})
	return err
}

// want returns what the source of the volume must support. The id is empty before the volume
// exists.
func want(task input.Task, id string) mapper.Want {
	w := mapper.Want{
		Options:      task.Options,
		PVName:       task.PV.Name,
		VolumeID:     id,
		AccessModes:  task.PV.Spec.AccessModes,
		VolumeMode:   corev1.PersistentVolumeFilesystem,
		MountOptions: task.PV.Spec.MountOptions,
		Filled:       task.Volume.HasContent(),
		SecretRef:    task.Secret,
	}
	if task.PV.Spec.VolumeMode != nil {
		w.VolumeMode = *task.PV.Spec.VolumeMode
	}
	return w
}
