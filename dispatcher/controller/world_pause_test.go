package controller_test

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	batchclient "k8s.io/client-go/kubernetes/typed/batch/v1"
)

// paused is a client whose process may be stopped between its last look and the Job that it makes, as long as
// pause takes: others go on meanwhile.
type paused struct {
	kubernetes.Interface
	pause func()
}

type pausedBatch struct {
	batchclient.BatchV1Interface
	pause func()
}

type pausedJobs struct {
	batchclient.JobInterface
	pause func()
}

// BatchV1 is where Jobs are made.
func (p paused) BatchV1() batchclient.BatchV1Interface {
	return pausedBatch{p.Interface.BatchV1(), p.pause}
}

// Jobs of a namespace.
func (p pausedBatch) Jobs(namespace string) batchclient.JobInterface {
	return pausedJobs{p.BatchV1Interface.Jobs(namespace), p.pause}
}

// Create makes a Job, after a pause.
func (p pausedJobs) Create(ctx context.Context, job *batchv1.Job, opts metav1.CreateOptions) (*batchv1.Job, error) {
	if p.pause != nil {
		p.pause()
	}
	return p.JobInterface.Create(ctx, job, opts)
}
