package admin

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// Auditor looks for what stands for nothing. The Jobs that it makes are gated, and run when the dispatcher that leads confirms them.
type Auditor struct {
	Client kubernetes.Interface
	// Objects reads metadata.
	Objects metadata.Interface
	Clock   clock.Clock
	// Provisioner is the name that StorageClasses write, Namespace where the configs of those are that name no other.
	Provisioner, Namespace string
	Cluster                jobs.Cluster
	// Timeout limits each Job.
	Timeout time.Duration
}

// How often a Job is looked at, and how long the deletion of one may take when the audit itself is being ended.
const (
	lookEvery    = time.Second
	removeWithin = 10 * time.Second
)

// seen is a Job and its pods as they were last read.
type seen struct {
	job  *batchv1.Job
	pods []*corev1.Pod
}

// create creates a Job of a UID under the next number that is free.
func (a *Auditor) create(ctx context.Context, uid string, verb contract.Verb, build func(number int) (*batchv1.Job, error)) (*batchv1.Job, error) {
	existing, err := a.Client.BatchV1().Jobs(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: jobs.LabelMember + uid})
	if err != nil {
		return nil, fmt.Errorf("list the Jobs of %s: %w", uid, err)
	}
	number := 1
	for i := range existing.Items {
		if record := runs.RecordOf(&existing.Items[i], uid); record.Verb == verb {
			number = max(number, record.Number+1)
		}
	}
	job, err := build(number)
	if err != nil {
		return nil, fmt.Errorf("build a Job: %w", err)
	}
	created, err := a.Client.BatchV1().Jobs(job.Namespace).Create(ctx, job, metav1.CreateOptions{FieldManager: patch.FieldManager})
	if err != nil {
		return nil, fmt.Errorf("create the Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	return created, nil
}

// remove deletes a Job that was read, also when the audit is being ended. One that stays expires.
func (a *Auditor) remove(ctx context.Context, job *batchv1.Job) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), removeWithin)
	defer stop()
	_ = a.Client.BatchV1().Jobs(job.Namespace).Delete(ctx, job.Name, metav1.DeleteOptions{
		PropagationPolicy: new(metav1.DeletePropagationBackground), Preconditions: &metav1.Preconditions{UID: &job.UID},
	})
}

// await looks at a Job until it has ended, the dispatcher has cancelled it, or the time is up.
func (a *Auditor) await(ctx context.Context, job *batchv1.Job, hasEnded func(seen) bool) (seen, error) {
	until := a.Clock.Now().Add(a.Timeout)
	for {
		now, err := a.look(ctx, job)
		switch {
		case err != nil:
			return now, err
		case now.job == nil:
			return now, a.whyGone(ctx, job)
		case hasEnded(now):
			return now, nil
		case !a.Clock.Now().Before(until):
			return now, fmt.Errorf("the Job %s/%s has not ended within %s: %s", job.Namespace, job.Name, a.Timeout, a.whyNot(ctx, now))
		}
		select {
		case <-ctx.Done():
			return now, ctx.Err()
		case <-a.Clock.After(lookEvery):
		}
	}
}

// look reads a Job and its pods. A Job that does not exist any more is nil. The pods of an earlier Job of its name may exist for a while longer.
func (a *Auditor) look(ctx context.Context, job *batchv1.Job) (seen, error) {
	now, err := a.Client.BatchV1().Jobs(job.Namespace).Get(ctx, job.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || err == nil && now.UID != job.UID {
		return seen{}, nil
	}
	if err != nil {
		return seen{}, fmt.Errorf("look at the Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	list, err := a.Client.CoreV1().Pods(job.Namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.ControllerUidLabel + "=" + string(job.UID)})
	if err != nil {
		return seen{}, fmt.Errorf("list the pods of the Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	return seen{now, pointers(list.Items)}, nil
}

// whyGone returns why a Job does not exist any more, by the event of the dispatcher that has cancelled it.
func (a *Auditor) whyGone(ctx context.Context, job *batchv1.Job) error {
	if w := a.warning(ctx, job.Namespace, string(job.UID)); w != nil {
		return fmt.Errorf("the dispatcher has cancelled the Job %s/%s: %s", job.Namespace, job.Name, quote.Line(w.Note))
	}
	return fmt.Errorf("the Job %s/%s was deleted, and no event says why", job.Namespace, job.Name)
}

// whyNot returns why a Job has not ended, and what to do.
func (a *Auditor) whyNot(ctx context.Context, s seen) string {
	about := string(s.job.UID)
	if len(s.pods) > 0 {
		about = string(s.pods[len(s.pods)-1].UID)
	}
	stuck, _ := runs.StuckOf(s.job, s.pods, a.warning(ctx, s.job.Namespace, about), a.Clock.Now())
	switch {
	case runs.GatedPod(s.pods) != nil:
		if w := a.warning(ctx, s.job.Namespace, string(s.job.UID)); w != nil {
			return quote.Line(w.Note)
		}
		return "no dispatcher has confirmed it. Remedy: see whether one leads (kubectl get lease -A), serves the namespace " + s.job.Namespace + ", and is of this version"
	case stuck != nil && stuck.Note != "":
		return quote.Line(stuck.Note)
	default:
		return "its container is at work. Remedy: give it more time with --timeout, and see that the storage answers"
	}
}

// warning returns the newest warning about an object, or nil.
func (a *Auditor) warning(ctx context.Context, namespace, uid string) *runs.Warning {
	list, err := a.Client.CoreV1().Events(namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.Set{"involvedObject.uid": uid, "type": corev1.EventTypeWarning}.String(),
	})
	if err != nil {
		return &runs.Warning{Note: errors.Join(errors.New("its events cannot be read"), err).Error()}
	}
	return runs.NewestWarning(list.Items)
}
