package controller_test

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

const tracked = batchv1.JobTrackingFinalizer

// jobs is the Job controller, the TTL controller and the garbage collector.
func (w *world) jobs() {
	for _, job := range every[*batchv1.Job](w) {
		switch {
		case slices.Contains(job.Finalizers, metav1.FinalizerDeleteDependents) && len(w.podsOf(job)) == 0:
			unfinalize(w, kcm, job, metav1.FinalizerDeleteDependents)
		case ended(job) != nil:
			w.expire(job)
		case job.DeletionTimestamp == nil && (job.Spec.Suspend == nil || !*job.Spec.Suspend):
			w.manage(job)
		}
	}
	for _, pod := range every[*corev1.Pod](w) {
		w.collect(pod)
	}
}

// ended is the condition with which a Job ended, or nil.
func ended(job *batchv1.Job) *batchv1.JobCondition {
	for i, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}

func (w *world) expire(job *batchv1.Job) {
	if ttl := job.Spec.TTLSecondsAfterFinished; ttl != nil && job.DeletionTimestamp == nil &&
		w.due(ended(job).LastTransitionTime.Add(time.Duration(*ttl)*time.Second)) {
		drop(w, kcm, job)
	}
}

// manage makes the Job's pod and says how it ended. Pods that were disrupted are replaced.
func (w *world) manage(job *batchv1.Job) {
	if job.Status.StartTime == nil {
		edit(w, kcm, job, func(j *batchv1.Job) { j.Status.StartTime = new(metav1.Now()) })
		job = get[*batchv1.Job](w, job.Namespace, job.Name)
	}
	late := w.due(job.Status.StartTime.Add(time.Duration(*job.Spec.ActiveDeadlineSeconds) * time.Second))
	lost := 0
	for _, pod := range w.podsOf(job) {
		switch {
		case pod.Status.Phase == corev1.PodSucceeded:
			w.conclude(job, batchv1.JobComplete, "CompletionsReached")
			return
		case pod.Status.Phase == corev1.PodFailed && disrupted(pod):
			w.conclude(job, batchv1.JobFailed, "PodFailurePolicy")
			return
		case pod.Status.Phase == corev1.PodFailed && late:
			w.conclude(job, batchv1.JobFailed, "DeadlineExceeded")
			return
		case pod.Status.Phase == corev1.PodFailed:
			w.conclude(job, batchv1.JobFailed, "BackoffLimitExceeded")
			return
		case late:
			drop(w, kcm, pod)
			return
		default:
			return
		}
	}
	request, _, err := runs.RecordedRequest(job.Spec.Template.Annotations, job.Labels[contract.LabelClaimUID])
	switch {
	case err != nil:
		w.t.Fatalf("the files of %s: %v", job.Name, err)
	case late:
		w.conclude(job, batchv1.JobFailed, "DeadlineExceeded")
	case lost == 0 && job.Status.Active > 0:
		w.conclude(job, batchv1.JobFailed, "BackoffLimitExceeded") // its pod is gone without a trace
	case !w.stuck[request.Name]:
		w.spawn(job, lost)
	}
}

func (w *world) spawn(job *batchv1.Job, number int) {
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Name, pod.Namespace = fmt.Sprintf("%s-pod%d", job.Name, number), job.Namespace
	pod.Labels[batchv1.JobNameLabel] = job.Name
	pod.Finalizers = append(pod.Finalizers, tracked)
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: job.Name, UID: job.UID, Controller: new(true)}}
	pod.Status.Phase = corev1.PodPending
	w.assign(pod)
	add(w, kcm, pod)
	edit(w, kcm, job, func(j *batchv1.Job) { j.Status.Active = 1 })
}

func (w *world) conclude(job *batchv1.Job, kind batchv1.JobConditionType, reason string) {
	edit(w, kcm, job, func(j *batchv1.Job) {
		if j.Status.Active > 0 && kind == batchv1.JobFailed {
			j.Status.Failed = 1
		}
		j.Status.Active = 0
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: metav1.Now(),
		})
		if kind == batchv1.JobComplete {
			j.Status.CompletionTime = new(metav1.Now())
		}
	})
}

// collect lets go of pods that were counted, and deletes those whose Job has gone.
func (w *world) collect(pod *corev1.Pod) {
	job := get[*batchv1.Job](w, pod.Namespace, pod.Labels[batchv1.JobNameLabel])
	orphan := job == nil || job.UID != pod.OwnerReferences[0].UID
	if orphan || slices.Contains(job.Finalizers, metav1.FinalizerDeleteDependents) {
		drop(w, kcm, pod)
	}
	counted := over(pod) && (orphan || ended(job) != nil) || job != nil && job.DeletionTimestamp != nil
	if counted && slices.Contains(pod.Finalizers, tracked) {
		unfinalize(w, kcm, pod, tracked)
	}
}

func (w *world) podsOf(job *batchv1.Job) []*corev1.Pod {
	var out []*corev1.Pod
	for _, pod := range every[*corev1.Pod](w) {
		if pod.Namespace == job.Namespace && pod.OwnerReferences[0].UID == job.UID {
			out = append(out, pod)
		}
	}
	return out
}

func over(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func disrupted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	})
}
