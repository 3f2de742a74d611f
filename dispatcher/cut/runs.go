package cut

import (
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// A Job and its pod hold the properties of their config, and a claim's request, several times.

// cutJob keeps of a Job's pod template only what an undo repeats. Of a Job that is the record of no
// claim any more that is not kept either, since an undo is decided on live objects. It stays where
// the dispatcher was to create the PV: whether it can is observed as long as the Job exists.
func cutJob(job *batchv1.Job) *batchv1.Job {
	out := &batchv1.Job{ObjectMeta: cutMeta(&job.ObjectMeta), Status: job.Status}
	out.Labels, out.Annotations, out.OwnerReferences = job.Labels, job.Annotations, job.OwnerReferences
	template := job.Spec.Template
	out.Spec = batchv1.JobSpec{
		Suspend: job.Spec.Suspend, ActiveDeadlineSeconds: job.Spec.ActiveDeadlineSeconds, TTLSecondsAfterFinished: job.Spec.TTLSecondsAfterFinished,
	}
	out.Spec.Template.Finalizers = template.Finalizers
	if isGivenUp := runs.AnyRecorded(job) && !runs.IsRecord(job); !isGivenUp || jobs.RecordOf(job, jobs.UIDs(job)[0]).Described != "" {
		out.Spec.Template.Annotations = onlyKeys(template.Annotations, jobs.AnnRequest, jobs.AnnPV)
	}
	out.Spec.Template.Spec.ActiveDeadlineSeconds = template.Spec.ActiveDeadlineSeconds
	out.Spec.Template.Spec.AutomountServiceAccountToken = template.Spec.AutomountServiceAccountToken
	return out
}

func onlyKeys(all map[string]string, keys ...string) map[string]string {
	out := map[string]string{}
	for _, key := range keys {
		if value, found := all[key]; found {
			out[key] = value
		}
	}
	return out
}

// tokenMount is what is kept of a pod's token, in its containers. All pods share it.
var tokenMount = []corev1.VolumeMount{{MountPath: runs.TokenPath}}

// Pod keeps what says whether a pod may run, and how it has ended.
func Pod(pod *corev1.Pod) *corev1.Pod {
	out := &corev1.Pod{ObjectMeta: cutMeta(&pod.ObjectMeta)}
	out.Labels, out.Annotations, out.OwnerReferences = pod.Labels, onlyKeys(pod.Annotations, jobs.AnnUIDs, contract.AnnRevision), pod.OwnerReferences
	for key, value := range out.Annotations {
		out.Annotations[key] = cutText(value)
	}
	if out.Finalizers = nil; runs.HasFinalizer(pod) { // no others are read, and only this one is removed, by its name
		out.Finalizers = []string{jobs.FinalizerRecord}
	}
	s := pod.Spec
	out.Spec = corev1.PodSpec{
		NodeName: s.NodeName, NodeSelector: s.NodeSelector, SchedulingGates: s.SchedulingGates, ActiveDeadlineSeconds: s.ActiveDeadlineSeconds,
		TerminationGracePeriodSeconds: s.TerminationGracePeriodSeconds,
		AutomountServiceAccountToken:  s.AutomountServiceAccountToken,
	}
	var mounts []corev1.VolumeMount
	if runs.HasToken(s) {
		mounts = tokenMount
	}
	// How long a container's message can be depends on how many there are.
	for _, c := range s.Containers {
		out.Spec.Containers = append(out.Spec.Containers, corev1.Container{Name: c.Name, VolumeMounts: mounts})
	}
	for _, c := range s.InitContainers {
		out.Spec.InitContainers = append(out.Spec.InitContainers, corev1.Container{Name: c.Name})
	}
	for _, c := range s.EphemeralContainers {
		out.Spec.EphemeralContainers = append(out.Spec.EphemeralContainers, corev1.EphemeralContainer{
			EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: c.Name},
		})
	}
	out.Status = cutPodStatus(pod.Status, out.Spec)
	return out
}

// cutPodStatus keeps of a pod's status what a run is read from. The API server limits neither the
// texts nor the lists in it, and lets a kubelet write containers that the pod does not have
// (ValidatePodStatusUpdate in Kubernetes' pkg/apis/core/validation). The caches once kept 1.4 MB of
// one pod, in 330 conditions (TestCachesKeepFewBytesOfWhatAKubeletWrites).
func cutPodStatus(s corev1.PodStatus, spec corev1.PodSpec) corev1.PodStatus {
	return corev1.PodStatus{
		Phase: cutText(s.Phase), Conditions: cutConditions(s.Conditions), Message: cutText(s.Message), Reason: cutText(s.Reason), StartTime: s.StartTime,
		InitContainerStatuses: cutStatuses(s.InitContainerStatuses, spec.InitContainers), ContainerStatuses: cutStatuses(s.ContainerStatuses, spec.Containers),
	}
}

// longestText is the longest text of a pod's status that is kept, in bytes: no kubelet writes a
// longer message of a container. The API server limits none, so a node that an attacker controls
// may write one as large as an object may be.
const longestText = contract.MaxMessage

func cutText[T ~string](text T) T {
	if len(text) <= longestText {
		return text
	}
	return T(strings.Clone(string(text[:longestText])))
}

// readConditions are the types of a pod's conditions that are read.
var readConditions = []corev1.PodConditionType{corev1.PodScheduled, corev1.DisruptionTarget}

// cutConditions keeps the first condition of each type that is read.
func cutConditions(all []corev1.PodCondition) []corev1.PodCondition {
	var out []corev1.PodCondition
	for _, c := range all {
		isKept := func(o corev1.PodCondition) bool { return o.Type == c.Type }
		if slices.Contains(readConditions, c.Type) && !slices.ContainsFunc(out, isKept) {
			out = append(out, corev1.PodCondition{
				Type: c.Type, Status: cutText(c.Status), Reason: cutText(c.Reason), Message: cutText(c.Message), LastTransitionTime: c.LastTransitionTime,
			})
		}
	}
	return out
}

// cutStatuses keeps the first status of each container.
func cutStatuses(all []corev1.ContainerStatus, of []corev1.Container) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, s := range all {
		isIn := func(c corev1.Container) bool { return c.Name == s.Name }
		isKept := func(o corev1.ContainerStatus) bool { return o.Name == s.Name }
		if slices.ContainsFunc(of, isIn) && !slices.ContainsFunc(out, isKept) {
			out = append(out, corev1.ContainerStatus{
				Name: s.Name, State: cutState(s.State), LastTerminationState: cutState(s.LastTerminationState), ContainerID: cutText(s.ContainerID),
			})
		}
	}
	return out
}

func cutState(s corev1.ContainerState) corev1.ContainerState {
	if s.Waiting != nil {
		s.Waiting = &corev1.ContainerStateWaiting{Reason: cutText(s.Waiting.Reason), Message: cutText(s.Waiting.Message)}
	}
	if s.Terminated != nil {
		ended := *s.Terminated
		ended.Reason, ended.Message, ended.ContainerID = cutText(ended.Reason), cutText(ended.Message), cutText(ended.ContainerID)
		s.Terminated = &ended
	}
	return s
}
