package fakecluster

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// runJobController is the Job controller (pkg/controller/job/job_controller.go, syncJob), the TTL
// controller (pkg/controller/ttlafterfinished) and the garbage collector. Of the Job controller it
// leaves out what doc.go names.
func (c *Cluster) runJobController() {
	for _, job := range shared[*batchv1.Job](c) {
		switch {
		case slices.Contains(job.Finalizers, metav1.FinalizerDeleteDependents) && len(c.podsOf(job)) == 0:
			c.unprotect(job, metav1.FinalizerDeleteDependents)
		case slices.Contains(job.Finalizers, metav1.FinalizerOrphanDependents):
			c.leavePods(job)
		case FinishedCondition(job) != nil:
			c.expire(job)
		case job.DeletionTimestamp == nil && (job.Spec.Suspend == nil || !*job.Spec.Suspend):
			c.manage(job)
		}
	}
	for _, pod := range shared[*corev1.Pod](c) {
		c.collect(pod)
	}
}

// FinishedCondition returns the condition with which a Job finished, or nil.
func FinishedCondition(job *batchv1.Job) *batchv1.JobCondition {
	for i, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return &job.Status.Conditions[i]
		}
	}
	return nil
}

func (c *Cluster) expire(job *batchv1.Job) {
	if ttl := job.Spec.TTLSecondsAfterFinished; ttl != nil && job.DeletionTimestamp == nil &&
		c.due(FinishedCondition(job).LastTransitionTime.Add(time.Duration(*ttl)*time.Second)) {
		Delete(c, KubeControllerManager, job)
	}
}

// manage creates the Job's pod and sets how the Job finished.
func (c *Cluster) manage(job *batchv1.Job) {
	if job.Status.StartTime == nil {
		set(c, KubeControllerManager, job, func(j *batchv1.Job) { j.Status.StartTime = new(c.now()) })
		if job, _ = sharedOne[*batchv1.Job](c, job.Namespace, job.Name); job == nil || job.Status.StartTime == nil {
			return
		}
	}
	late := c.due(job.Status.StartTime.Add(time.Duration(*job.Spec.ActiveDeadlineSeconds) * time.Second))
	pods := slices.DeleteFunc(c.podsOf(job), c.isUncounted)
	switch {
	case len(pods) > 0:
		c.follow(job, pods[0], late)
	case late:
		c.finish(job, batchv1.JobFailed, "DeadlineExceeded")
	case job.Status.Active > 0 && !c.Worlds.ReplacesVanishedPods:
		c.finish(job, batchv1.JobFailed, "BackoffLimitExceeded") // its pod was deleted without a trace
	case len(c.NoPodFor) == 0 || !c.NoPodFor[c.inputOf(job.Name, &job.Spec.Template.ObjectMeta, &job.Spec.Template.Spec).requests[0].Name]:
		c.createPod(job)
	}
}

// isUncounted reports whether the Job controller never counts a pod: it has ended without that
// controller's finalizer.
func (c *Cluster) isUncounted(pod *corev1.Pod) bool {
	return c.Worlds.ReplacesVanishedPods && HasEnded(pod) && !slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer)
}

// follow sets how a Job finished by its pod.
func (c *Cluster) follow(job *batchv1.Job, pod *corev1.Pod, late bool) {
	switch {
	case pod.Status.Phase == corev1.PodSucceeded:
		c.finish(job, batchv1.JobComplete, "CompletionsReached")
	case pod.Status.Phase == corev1.PodFailed && isDisrupted(pod):
		c.finish(job, batchv1.JobFailed, "PodFailurePolicy")
	case pod.Status.Phase == corev1.PodFailed && late:
		c.finish(job, batchv1.JobFailed, "DeadlineExceeded")
	case pod.Status.Phase == corev1.PodFailed:
		c.finish(job, batchv1.JobFailed, "BackoffLimitExceeded")
	case late:
		Delete(c, KubeControllerManager, pod)
	}
}

func (c *Cluster) createPod(job *batchv1.Job) {
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Name, pod.Namespace = fmt.Sprintf("%s-pod%d", job.Name, c.podsMade[job.UID]), job.Namespace
	pod.Labels[batchv1.JobNameLabel], pod.Labels[batchv1.ControllerUidLabel] = job.Name, string(job.UID)
	pod.Finalizers = append(pod.Finalizers, batchv1.JobTrackingFinalizer)
	pod.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: job.Name, UID: job.UID, Controller: new(true)}}
	pod.Status.Phase = corev1.PodPending
	if c.Images[pod.Spec.Containers[0].Image].Sidecar { // the webhook of a mesh adds it
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: sidecar})
	}
	mountToken(pod)
	c.assignNode(pod)
	err := c.Server.locked(func() error { _, err := c.Server.create(KubeControllerManager, keyOf(pod), pod); return err })
	if err != nil {
		return // it is refused, and tried again
	}
	c.podsMade[job.UID]++
	set(c, KubeControllerManager, job, func(j *batchv1.Job) { j.Status.Active = 1 })
}

// mountToken mounts the token of a pod in its containers, as the admission plugin ServiceAccount does
// (mountServiceAccountToken in plugin/pkg/admission/serviceaccount). It leaves the volume out.
func mountToken(pod *corev1.Pod) {
	if !ptr.Deref(pod.Spec.AutomountServiceAccountToken, true) {
		return
	}
	for i := range pod.Spec.Containers {
		c := &pod.Spec.Containers[i]
		c.VolumeMounts = append(slices.Clip(c.VolumeMounts), corev1.VolumeMount{
			Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount",
		})
	}
}

func (c *Cluster) finish(job *batchv1.Job, kind batchv1.JobConditionType, reason string) {
	set(c, KubeControllerManager, job, func(j *batchv1.Job) {
		if j.Status.Active > 0 && kind == batchv1.JobFailed {
			j.Status.Failed = 1
		}
		j.Status.Active = 0
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, Reason: reason, LastTransitionTime: c.now(),
		})
		if kind == batchv1.JobComplete {
			j.Status.CompletionTime = new(c.now())
		}
	})
}

// leavePods takes the owner off the pods of a Job that is deleted without them. The Job controller
// then counts none.
func (c *Cluster) leavePods(job *batchv1.Job) {
	pods := c.podsOf(job)
	for _, pod := range pods {
		set(c, KubeControllerManager, pod, func(p *corev1.Pod) { p.OwnerReferences = nil })
	}
	if len(pods) == 0 {
		set(c, KubeControllerManager, job, func(j *batchv1.Job) { j.Status.Active = 0 })
		c.unprotect(job, metav1.FinalizerOrphanDependents)
	}
}

// collect takes the Job controller's finalizer off pods that were counted or left, and deletes
// those whose Job no longer exists.
func (c *Cluster) collect(pod *corev1.Pod) {
	if len(pod.OwnerReferences) == 0 {
		c.unprotect(pod, batchv1.JobTrackingFinalizer)
		return
	}
	job, found := sharedOne[*batchv1.Job](c, pod.Namespace, pod.Labels[batchv1.JobNameLabel])
	orphan := !found || job.UID != pod.OwnerReferences[0].UID
	if orphan || slices.Contains(job.Finalizers, metav1.FinalizerDeleteDependents) {
		Delete(c, KubeControllerManager, pod)
	}
	counted := HasEnded(pod) && (orphan || FinishedCondition(job) != nil)
	if counted || found && job.DeletionTimestamp != nil {
		c.unprotect(pod, batchv1.JobTrackingFinalizer)
	}
}

func (c *Cluster) podsOf(job *batchv1.Job) []*corev1.Pod {
	return slices.DeleteFunc(shared[*corev1.Pod](c), func(pod *corev1.Pod) bool {
		return pod.Namespace != job.Namespace || !metav1.IsControlledBy(pod, job)
	})
}

// HasEnded reports whether a pod has come to its end.
func HasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func isDisrupted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue
	})
}

// CreatedJobs returns the creations of the Jobs of a verb, in order; an empty verb: of any.
func (c *Cluster) CreatedJobs(verb contract.Verb) []Change {
	var out []Change
	for _, change := range c.Server.History() {
		if job, ok := change.Now.(*batchv1.Job); ok && change.Verb == "create" && (verb == "" || VerbOf(&job.Spec.Template.Spec) == string(verb)) {
			out = append(out, change)
		}
	}
	return out
}
