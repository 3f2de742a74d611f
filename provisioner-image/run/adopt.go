package run

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/pv"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// findFormer looks for the PV of the claim whose UID the volume to adopt carries. If that stands for
// another volume, this one is a copy, such as a restored backup. If it stands for this one, the volume
// changes hands, provided that the claim had the same namespace and name, is deleted, and its PV is
// retained. The PV is returned then.
func (r *Runner) findFormer(ctx context.Context, task *input.Task) (*corev1.PersistentVolume, error) {
	if task.Volume.Adopt == "" {
		return nil, nil
	}
	owner, former, err := r.keeper.OwnersOf(ctx, task.Volume.Adopt)
	switch {
	case err != nil:
		return nil, volume.IgnoreGone(err)
	case owner == task.Request.UID: // by an earlier run, which was killed before it created the PV
		return r.pvOf(ctx, former)
	default:
		return r.takenFrom(ctx, task, owner)
	}
}

// takenFrom notes in the task what the volume to adopt is to the PV of the claim with this UID, and returns
// the PV if the volume changes hands.
func (r *Runner) takenFrom(ctx context.Context, task *input.Task, uid string) (*corev1.PersistentVolume, error) {
	there, err := r.pvOf(ctx, uid)
	if err != nil || there == nil {
		return nil, err
	}
	record, err := pv.ReadRecord(there, pv.Record{Access: task.Volume.Access})
	switch {
	case isRaw(there) != isRaw(task.PV):
		return nil, ofAnotherMode(task.Volume.Adopt, there)
	case err != nil, record.VolumeID == "":
		return nil, err
	case record.VolumeID != task.Volume.Adopt:
		task.Volume.CopyOf = uid
		return nil, nil
	case !isOf(there, uid, task.Request):
		return nil, ofAnotherClaim(task.Volume.Adopt, there)
	case !pv.IsRetained(there):
		return nil, notRetained(task.Volume.Adopt, there)
	default:
		task.Volume.Former = volume.Former{UID: uid, Access: record.Access}
		return there, nil
	}
}

// pvOf returns the PV of the claim with this UID, or nil.
func (r *Runner) pvOf(ctx context.Context, uid string) (*corev1.PersistentVolume, error) {
	if uid == "" {
		return nil, nil
	}
	there, err := r.store.Get(ctx, contract.PVName(uid))
	if err != nil || there == nil || there.Annotations[contract.AnnClaimUID] != uid {
		return nil, err
	}
	return there, nil
}

// isOf reports whether the PV was bound to the claim with this UID, and that had the request's namespace
// and name. A line of adopt outlives the claim that it was written for, and its volume may be another
// tenant's by then. A PV that is passed on has no UID there, or another one.
func isOf(of *corev1.PersistentVolume, uid string, r contract.Request) bool {
	claim := of.Spec.ClaimRef
	return claim != nil && string(claim.UID) == uid && claim.Namespace == r.Namespace && claim.Name == r.Name
}

func isRaw(of *corev1.PersistentVolume) bool {
	return of.Spec.VolumeMode != nil && *of.Spec.VolumeMode == corev1.PersistentVolumeBlock
}

// ofAnotherMode is the error of a claim that would use a raw device as a file system, or the other way
// round: the kubelet formats a disk on which it finds no file system.
func ofAnotherMode(id string, of *corev1.PersistentVolume) error {
	return &volume.Error{
		Kind:  volume.Unsuitable,
		Doing: "adopt volume " + id,
		Said:  "PersistentVolume " + of.Name + " has another volumeMode than the claim. Remedy: create the claim with the same one",
	}
}

func ofAnotherClaim(id string, of *corev1.PersistentVolume) error {
	return &volume.Error{
		Kind:  volume.Unsuitable,
		Doing: "adopt volume " + id,
		Said: fmt.Sprintf("it is the volume of PersistentVolume %s, which is not that of an earlier claim of the same namespace and name, and no other claim takes it."+
			" Remedy: correct the line of adopt in the config", of.Name),
	}
}

func notRetained(id string, of *corev1.PersistentVolume) error {
	return &volume.Error{
		Kind:  volume.Unsuitable,
		Doing: "adopt volume " + id,
		Said: fmt.Sprintf("it is the volume of PersistentVolume %s, which has the reclaim policy %s and the phase %s. Remedy: set the policy to Retain, then stop its pods"+
			" and delete its claim", of.Name, of.Spec.PersistentVolumeReclaimPolicy, of.Status.Phase),
	}
}

// whatDiffers says how the source of the PV differs from that of the former PV of the same volume.
func whatDiffers(former, made *corev1.PersistentVolume) string {
	differences := pv.Differences(former.Spec.PersistentVolumeSource, made.Spec.PersistentVolumeSource)
	if len(differences) == 0 {
		differences = []string{"no difference"}
	}
	return oneLine("the volume has left PersistentVolume "+former.Name+" for "+made.Name+": "+strings.Join(differences, "; "), contract.MaxMessage/4) + "\n"
}
