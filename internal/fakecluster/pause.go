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

// pausing is a client that calls beforeJob ahead of every Job that it creates, and beforePatch
// ahead of every patch of a Job or a pod. The server is not locked meanwhile, so others go on.
type pausing struct {
	kubernetes.Interface
	beforeJob   func()
	beforePatch func(resource string)
}

func (p pausing) patches(resource string) {
	if p.beforePatch != nil {
		p.beforePatch(resource)
	}
}

type pausingBatch struct {
	batchclient.BatchV1Interface
	pausing pausing
}

type pausingJobs struct {
	batchclient.JobInterface
	pausing pausing
}

// BatchV1 is where Jobs are created and patched.
func (p pausing) BatchV1() batchclient.BatchV1Interface {
	return pausingBatch{p.Interface.BatchV1(), p}
}

// Jobs of a namespace.
func (b pausingBatch) Jobs(namespace string) batchclient.JobInterface {
	return pausingJobs{b.BatchV1Interface.Jobs(namespace), b.pausing}
}

// Create calls beforeJob, then creates the Job.
func (j pausingJobs) Create(ctx context.Context, job *batchv1.Job, opts metav1.CreateOptions) (*batchv1.Job, error) {
	if j.pausing.beforeJob != nil {
		j.pausing.beforeJob()
	}
	return j.JobInterface.Create(ctx, job, opts)
}

// Patch calls beforePatch, then patches the Job.
//
//nolint:revive // client-go's interface
func (j pausingJobs) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*batchv1.Job, error) {
	j.pausing.patches("jobs")
	return j.JobInterface.Patch(ctx, name, kind, data, opts, subresources...)
}

type pausingCore struct {
	coreclient.CoreV1Interface
	pausing pausing
}

type pausingPods struct {
	coreclient.PodInterface
	pausing pausing
}

// CoreV1 is where pods are patched.
func (p pausing) CoreV1() coreclient.CoreV1Interface {
	return pausingCore{p.Interface.CoreV1(), p}
}

// Pods of a namespace.
func (c pausingCore) Pods(namespace string) coreclient.PodInterface {
	return pausingPods{c.CoreV1Interface.Pods(namespace), c.pausing}
}

// Patch calls beforePatch, then patches the pod.
//
//nolint:revive // client-go's interface
func (p pausingPods) Patch(ctx context.Context, name string, kind types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (*corev1.Pod, error) {
	p.pausing.patches("pods")
	return p.PodInterface.Patch(ctx, name, kind, data, opts, subresources...)
}
