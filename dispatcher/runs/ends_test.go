package runs_test

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// jobThat returns a Job with a condition of this type and reason, or without one if the type is
// empty.
func jobThat(kind batchv1.JobConditionType, reason string) *batchv1.Job {
	job := &batchv1.Job{}
	job.Spec.Template.Finalizers = []string{jobs.FinalizerRecord}
	if kind != "" {
		job.Status.Conditions = []batchv1.JobCondition{
			{Type: batchv1.JobFailureTarget, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(ended.Add(-time.Minute))},
			{Type: kind, Status: corev1.ConditionTrue, Reason: reason, Message: "in Kubernetes' words", LastTransitionTime: metav1.NewTime(ended)},
		}
	}
	return job
}

func failed() *batchv1.Job { return jobThat(batchv1.JobFailed, "BackoffLimitExceeded") }

func terminating(job *batchv1.Job) *batchv1.Job {
	job.DeletionTimestamp = new(metav1.NewTime(ended))
	return job
}

// counted makes a Job count a failed pod.
func counted(job *batchv1.Job) *batchv1.Job {
	job.Status.Failed = 1
	return job
}

// unkept makes a Job one whose pods may be removed before they are read.
func unkept(job *batchv1.Job) *batchv1.Job {
	job.Spec.Template.Finalizers = nil
	return job
}

// exited returns a pod whose container ended with this code and message.
func exited(code int32, message string, changes ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-1"}}
	pod.Status.Phase = corev1.PodFailed
	if code == 0 {
		pod.Status.Phase = corev1.PodSucceeded
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{
		{Name: "notify", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 42, Message: "not the verdict"}}},
		{Name: contract.Container, ContainerID: "containerd://1", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message}}},
	}
	for _, change := range changes {
		change(pod)
	}
	return pod
}

func disrupted(pod *corev1.Pod) {
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue})
}

func deletedByHand(pod *corev1.Pod) { pod.DeletionTimestamp = new(metav1.NewTime(ended)) }

// deletedAfterEnd deletes a pod without a grace period, some time after its container has ended.
func deletedAfterEnd(later time.Duration) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[1].State.Terminated.FinishedAt = metav1.NewTime(ended)
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = new(metav1.NewTime(ended.Add(later))), new(int64(0))
	}
}

func because(reason, message string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { pod.Status.Reason, pod.Status.Message = reason, message }
}

// unknownBy makes the code one of a node that does not know how the container ended.
func unknownBy(reason string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		pod.Status.ContainerStatuses[1].State.Terminated.Reason = reason
	}
}

func oom(pod *corev1.Pod) { pod.Status.ContainerStatuses[1].State.Terminated.Reason = "OOMKilled" }

// neverMade leaves the status of the containers as the kubelet does if it could not create them.
func neverMade(pod *corev1.Pod) {
	for i := range pod.Status.ContainerStatuses {
		pod.Status.ContainerStatuses[i].ContainerID = ""
	}
}

// waits leaves the status of the container as the kubelet does before it creates it.
func waits(pod *corev1.Pod) {
	pod.Status.ContainerStatuses[1].ContainerID, pod.Status.ContainerStatuses[1].State = "", corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}
}

func neverRan(pod *corev1.Pod) { pod.Status.ContainerStatuses = nil }
