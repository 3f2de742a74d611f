package admin

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
)

// AskForRetry annotates a Job as it was observed: the dispatcher then starts the next attempt of
// each of its claims at once.
func AskForRetry(ctx context.Context, client kubernetes.Interface, job *batchv1.Job) error {
	if _, err := patch.Merge(ctx, client.BatchV1().Jobs(job.Namespace), job, patch.Annotate(map[string]string{jobs.AnnRetry: "now"})); err != nil {
		return fmt.Errorf("annotate the Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	return nil
}
