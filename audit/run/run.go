package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// Auditor looks for what stands for nothing. It starts the Jobs that it creates itself: they are
// gated, as a policy wants it of every provisioning pod, and it removes the gate.
type Auditor struct {
	Client kubernetes.Interface
	// Objects reads metadata.
	Objects metadata.Interface
	Clock   clock.Clock
	config.Dispatcher

	// Namespace is where the configs of classes are that name no other.
	Namespace string
	// ConfigNamespaces are other namespaces in which Jobs of dispatchers are, Lease is the leader's,
	// which names those of its dispatcher.
	ConfigNamespaces []string
	Lease            types.NamespacedName
	// Allowed is what the dispatcher lets pods use of a node, by namespace.
	Allowed jobs.Allowances
	Cluster Cluster
	// Timeout limits each Job.
	Timeout time.Duration
}

// How often a Job is looked at, how often it is judged again while its container has not started,
// and how long the deletion of one may take when the audit itself is being ended.
const (
	lookEvery    = time.Second
	judgeEvery   = 10 * time.Second
	removeWithin = 10 * time.Second
)

// seen is a Job and its pods as they were last read.
type seen struct {
	job  *batchv1.Job
	pods []*corev1.Pod
}

// create creates a Job.
func (a *Auditor) create(ctx context.Context, job *batchv1.Job) (*batchv1.Job, error) {
	created, err := a.Client.BatchV1().Jobs(job.Namespace).Create(ctx, job, metav1.CreateOptions{FieldManager: patch.FieldManager})
	if err != nil {
		return nil, fmt.Errorf("create the Job %s/%s: %w", job.Namespace, job.Name+job.GenerateName, err)
	}
	return created, nil
}

// remove deletes a Job, also when the audit is being ended. The Job keeps its name until its pod no
// longer exists, so that no other one of that name runs beside it.
func (a *Auditor) remove(ctx context.Context, job *batchv1.Job) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), removeWithin)
	defer stop()
	_ = a.Client.BatchV1().Jobs(job.Namespace).Delete(ctx, job.Name, metav1.DeleteOptions{
		PropagationPolicy: new(metav1.DeletePropagationForeground), Preconditions: &metav1.Preconditions{UID: &job.UID},
	}) // one that stays expires
}

// createNext creates a Job once none of its name is being deleted: what another node has of the same
// claim is deleted by a Job of that name.
func (a *Auditor) createNext(ctx context.Context, job *batchv1.Job) (*batchv1.Job, error) {
	for until := a.Clock.Now().Add(a.Timeout); ; {
		created, err := a.create(ctx, job)
		if !apierrors.IsAlreadyExists(err) || !a.Clock.Now().Before(until) {
			return created, err
		}
		other, failed := a.Client.BatchV1().Jobs(job.Namespace).Get(ctx, job.Name, metav1.GetOptions{})
		if failed == nil && other.DeletionTimestamp == nil {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-a.Clock.After(lookEvery):
		}
	}
}

// await starts a Job and waits until it has ended or the time is up. whyNot returns why the Job
// must not run, or nil. It is asked right before the gate is removed, and from then on until the
// container has started.
func (a *Auditor) await(ctx context.Context, job *batchv1.Job, whyNot func(context.Context) error) (seen, error) {
	until, judge := a.Clock.Now().Add(a.Timeout), time.Time{}
	for {
		now, err := a.look(ctx, job)
		switch {
		case err != nil:
			return now, err
		case now.hasEnded():
			return now, now.failure(a.Clock.Now())
		case !a.Clock.Now().Before(until):
			return now, fmt.Errorf("the Job %s/%s has not ended within %s: %s", job.Namespace, job.Name, a.Timeout, a.whyUnfinished(ctx, now))
		}
		if now.isToBeJudged(!a.Clock.Now().Before(judge)) {
			judge = a.Clock.Now().Add(judgeEvery)
			if err := a.start(ctx, now.startable(), whyNot); err != nil {
				return now, err
			}
		}
		select {
		case <-ctx.Done():
			return now, ctx.Err()
		case <-a.Clock.After(lookEvery):
		}
	}
}

// start removes the gate of a pod, if there is one, unless the Job must not run.
func (a *Auditor) start(ctx context.Context, gated *corev1.Pod, whyNot func(context.Context) error) error {
	if err := whyNot(ctx); err != nil || gated == nil {
		return err
	}
	if _, err := patch.Strategic(ctx, a.Client.CoreV1().Pods(gated.Namespace), gated, patch.DropGate(jobs.GateConfirm)); err != nil {
		return fmt.Errorf("remove the scheduling gate of the pod %s/%s: %w", gated.Namespace, gated.Name, err)
	}
	return nil
}

// isToBeJudged reports whether a Job is to be judged: it can start, or it has not started and a
// time has passed.
func (s seen) isToBeJudged(due bool) bool {
	return s.startable() != nil || due && !runs.HasStarted(s.pods)
}

// startable returns the pod that waits for nothing but our gate, or nil.
func (s seen) startable() *corev1.Pod {
	if gated := runs.GatedPod(s.pods); gated != nil && len(gated.Spec.SchedulingGates) == 1 {
		return gated
	}
	return nil
}

// hasEnded reports whether a Job has ended.
func (s seen) hasEnded() bool {
	pod := runs.NewestPod(s.pods)
	return runs.IsFinished(s.job) || pod != nil && runs.HasContainerEnded(pod)
}

// failure returns how a Job has failed, or nil. It is one line: the message is the image's, which
// could add a finding of its own in a line of its own.
func (s seen) failure(now time.Time) error {
	out := runs.Read(s.job, s.pods, now)
	switch {
	case out.Verdict == contract.Done:
		return nil
	case out.Verdict == contract.Unknown && len(s.pods) == 0:
		return fmt.Errorf("the pod of the Job %s/%s was deleted before it was read. Remedy: run the audit again; if that does not help, see who deletes pods in the namespace %s that have ended",
			s.job.Namespace, s.job.Name, s.job.Namespace)
	}
	return fmt.Errorf("the Job %s/%s: %s (%s): %s", s.job.Namespace, s.job.Name, out.Verdict, out, quote.Line(out.Message))
}

// whyChanged returns an error if a class has another config by now than its Job was built from.
func (a *Auditor) whyChanged(ctx context.Context, c Class) error {
	now, err := a.Classes(ctx, c.Name)
	switch {
	case err != nil:
		return err
	case now[0].Fault != nil:
		return now[0].Fault
	case now[0].UID != c.UID || now[0].Config.Source.Revision() != c.Config.Source.Revision():
		return errors.New("its config has changed. Remedy: run the audit again")
	default:
		return nil
	}
}

// look reads a Job and its pods.
func (a *Auditor) look(ctx context.Context, job *batchv1.Job) (seen, error) {
	now, err := a.another(ctx, job)
	if err == nil && (now.job == nil || now.job.UID != job.UID) {
		err = fmt.Errorf("the Job %s/%s was deleted", job.Namespace, job.Name)
	}
	return now, err
}

// another reads the Job that has a Job's name now, if there is one, and its pods. Those of an earlier
// one of the name may exist for a while longer. A policy lets only the Job controller create a pod with
// one of our labels.
func (a *Auditor) another(ctx context.Context, job *batchv1.Job) (seen, error) {
	now, err := a.Client.BatchV1().Jobs(job.Namespace).Get(ctx, job.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return seen{}, nil
	}
	if err != nil {
		return seen{}, fmt.Errorf("get the Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	list, err := a.Client.CoreV1().Pods(job.Namespace).List(ctx, metav1.ListOptions{LabelSelector: jobs.LabelVerb + "," + batchv1.ControllerUidLabel + "=" + string(now.UID)})
	if err != nil {
		return seen{}, fmt.Errorf("list the pods of the Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	out := seen{job: now}
	for i := range list.Items {
		out.pods = append(out.pods, &list.Items[i])
	}
	return out, nil
}

// whyUnfinished returns why a Job has not ended, and what to do.
func (a *Auditor) whyUnfinished(ctx context.Context, s seen) string {
	about := s.job.UID
	if pod := runs.NewestPod(s.pods); pod != nil {
		about = pod.UID
	}
	stuck, _ := runs.StuckOf(s.job, s.pods, a.warning(ctx, s.job.Namespace, about), a.Clock.Now())
	switch {
	case runs.GatedPod(s.pods) != nil:
		return "its pod has scheduling gates of other controllers. Remedy: let them be removed"
	case stuck != nil && stuck.Note.Cause != "":
		return quote.Line(stuck.Note.String())
	default:
		return "its container is at work. Remedy: give it more time with --timeout, and see that the storage answers"
	}
}

// warning returns the newest warning about an object, or nil.
func (a *Auditor) warning(ctx context.Context, namespace string, uid types.UID) *runs.Warning {
	warning, err := cluster.NewestWarning(ctx, a.Client, namespace, uid)
	if err != nil {
		return &runs.Warning{Note: errors.Join(errors.New("its events cannot be read"), err).Error()}
	}
	return warning
}
