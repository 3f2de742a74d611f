package fakecluster

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	batchclient "k8s.io/client-go/kubernetes/typed/batch/v1"
	coreclient "k8s.io/client-go/kubernetes/typed/core/v1"
)

// pausing is a client that calls before ahead of every write on a Job, a pod, a claim or a
// PersistentVolume. The server is not locked meanwhile, so others go on.
type pausing struct {
	kubernetes.Interface

	before func(verb, resource string)
}

// newPausing returns a client that pauses, or the client itself if there is nothing to call.
func newPausing(client kubernetes.Interface, before func(verb, resource string)) kubernetes.Interface {
	if before == nil {
		return client
	}
	return pausing{client, before}
}

// BatchV1 is where Jobs are written.
func (p pausing) BatchV1() batchclient.BatchV1Interface {
	return pausingBatch{p.Interface.BatchV1(), p}
}

// CoreV1 is where pods, claims and PersistentVolumes are written.
func (p pausing) CoreV1() coreclient.CoreV1Interface {
	return pausingCore{p.Interface.CoreV1(), p}
}

type pausingBatch struct {
	batchclient.BatchV1Interface

	pausing pausing
}

// Jobs of a namespace.
func (b pausingBatch) Jobs(namespace string) batchclient.JobInterface {
	return pausingJobs{b.BatchV1Interface.Jobs(namespace), b.pausing}
}

type pausingCore struct {
	coreclient.CoreV1Interface

	pausing pausing
}

// Pods of a namespace.
func (c pausingCore) Pods(namespace string) coreclient.PodInterface {
	return pausingPods{c.CoreV1Interface.Pods(namespace), c.pausing}
}

// PersistentVolumeClaims of a namespace.
func (c pausingCore) PersistentVolumeClaims(namespace string) coreclient.PersistentVolumeClaimInterface {
	return pausingClaims{c.CoreV1Interface.PersistentVolumeClaims(namespace), c.pausing}
}

// PersistentVolumes of the cluster.
func (c pausingCore) PersistentVolumes() coreclient.PersistentVolumeInterface {
	return pausingPVs{c.CoreV1Interface.PersistentVolumes(), c.pausing}
}

type pausingJobs struct {
	batchclient.JobInterface

	pausing pausing
}

// Create pauses, then creates the Job.
func (j pausingJobs) Create(ctx context.Context, job *batchv1.Job, opts metav1.CreateOptions) (*batchv1.Job, error) {
	j.pausing.before("create", "jobs")
	return j.JobInterface.Create(ctx, job, opts)
}

// Patch pauses, then patches the Job.
//
//nolint:revive // client-go's interface
func (j pausingJobs) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*batchv1.Job, error) {
	j.pausing.before("patch", "jobs")
	return j.JobInterface.Patch(ctx, name, kind, data, opts, subresources...)
}

// Delete pauses, then deletes the Job.
func (j pausingJobs) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	j.pausing.before("delete", "jobs")
	return j.JobInterface.Delete(ctx, name, opts)
}

type pausingPods struct {
	coreclient.PodInterface

	pausing pausing
}

// Patch pauses, then patches the pod.
//
//nolint:revive // client-go's interface
func (p pausingPods) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*corev1.Pod, error) {
	p.pausing.before("patch", "pods")
	return p.PodInterface.Patch(ctx, name, kind, data, opts, subresources...)
}

type pausingClaims struct {
	coreclient.PersistentVolumeClaimInterface

	pausing pausing
}

// Patch pauses, then patches the claim.
//
//nolint:revive // client-go's interface
func (c pausingClaims) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*corev1.PersistentVolumeClaim, error) {
	c.pausing.before("patch", "persistentvolumeclaims")
	return c.PersistentVolumeClaimInterface.Patch(ctx, name, kind, data, opts, subresources...)
}

type pausingPVs struct {
	coreclient.PersistentVolumeInterface

	pausing pausing
}

// Create pauses, then creates the PV.
func (v pausingPVs) Create(ctx context.Context, pv *corev1.PersistentVolume, opts metav1.CreateOptions) (*corev1.PersistentVolume, error) {
	v.pausing.before("create", "persistentvolumes")
	return v.PersistentVolumeInterface.Create(ctx, pv, opts)
}

// Patch pauses, then patches the PV.
//
//nolint:revive // client-go's interface
func (v pausingPVs) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*corev1.PersistentVolume, error) {
	v.pausing.before("patch", "persistentvolumes")
	return v.PersistentVolumeInterface.Patch(ctx, name, kind, data, opts, subresources...)
}

// Delete pauses, then deletes the PV.
func (v pausingPVs) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	v.pausing.before("delete", "persistentvolumes")
	return v.PersistentVolumeInterface.Delete(ctx, name, opts)
}
