package fakecluster

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	batchclient "k8s.io/client-go/kubernetes/typed/batch/v1"
)

// pausing is a client that calls before ahead of every Job that it creates. The server is not locked meanwhile, so
// others go on.
type pausing struct {
	kubernetes.Interface
	before func()
}

type pausingBatch struct {
	batchclient.BatchV1Interface
	before func()
}

type pausingJobs struct {
	batchclient.JobInterface
	before func()
}

// BatchV1 is where Jobs are created.
func (p pausing) BatchV1() batchclient.BatchV1Interface {
	return pausingBatch{p.Interface.BatchV1(), p.before}
}

// Jobs of a namespace.
func (p pausingBatch) Jobs(namespace string) batchclient.JobInterface {
	return pausingJobs{p.BatchV1Interface.Jobs(namespace), p.before}
}

// Create calls before, then creates the Job.
func (p pausingJobs) Create(ctx context.Context, job *batchv1.Job, opts metav1.CreateOptions) (*batchv1.Job, error) {
	if p.before != nil {
		p.before()
	}
	return p.JobInterface.Create(ctx, job, opts)
}
