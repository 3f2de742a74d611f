package play

import (
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Step is what is to be done with a pod.
type Step int

// The steps. A pod needs at most Finish, and Remove later.
const (
	Wait   Step = iota // nothing is to be done
	Finish             // write its PVs, then report that it has succeeded
	Remove             // delete it without a grace period, as a kubelet does when its containers have ended
)

// Of returns the next step of a pod.
func Of(pod *corev1.Pod) Step {
	hasEnded := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	grace := pod.DeletionGracePeriodSeconds
	switch {
	case pod.Spec.NodeName == "":
		return Wait
	case !hasEnded:
		return Finish // a deleted one, too: a pod that goes without a report may still run, for all that others know
	case pod.DeletionTimestamp == nil:
		return Wait
	case grace != nil && *grace == 0:
		return Wait // finalizers hold it
	default:
		return Remove
	}
}

// PVs returns the PersistentVolumes that a pod writes, from the files that it would read. A pod
// that provisions nothing writes none.
func PVs(pod *corev1.Pod) ([]*corev1.PersistentVolume, error) {
	if !provisions(pod) {
		return nil, nil
	}
	requests, err := contract.DecodeRequests([]byte(file(pod, contract.RequestFile)))
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	pvs, err := skeletons([]byte(file(pod, contract.PVFile)), len(requests.Items))
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", pod.Name, err)
	}
	for _, pv := range pvs {
		pv.Spec.NFS = Source(pv.Name)
	}
	return pvs, nil
}

// Source is where a volume would be.
func Source(name string) *corev1.NFSVolumeSource {
	return &corev1.NFSVolumeSource{Server: "10.250.0.9", Path: "/" + name}
}

// skeletons parses the file of PVs: one, or a list for a batch.
func skeletons(text []byte, n int) ([]*corev1.PersistentVolume, error) {
	list := struct {
		Items []*corev1.PersistentVolume `json:"items"`
	}{Items: []*corev1.PersistentVolume{{}}}
	var content any = list.Items[0]
	if n > 1 {
		content = &list
	}
	if err := json.Unmarshal(text, content); err != nil {
		return nil, fmt.Errorf("decode the PVs: %w", err)
	}
	if len(list.Items) != n {
		return nil, fmt.Errorf("%d PVs for %d requests", len(list.Items), n)
	}
	return list.Items, nil
}

// provisions reports whether the pod is one of ours that writes PVs: its verb is the last argument.
func provisions(pod *corev1.Pod) bool {
	for _, c := range pod.Spec.Containers {
		if n := len(c.Args); c.Name == contract.Container && n > 0 {
			return c.Args[n-1] == string(contract.Provision)
		}
	}
	return false
}

// file returns what a kubelet would write into a file of a downward API volume.
func file(pod *corev1.Pod, path string) string {
	name := strings.TrimPrefix(path, contract.Dir+"/")
	for _, volume := range pod.Spec.Volumes {
		if volume.DownwardAPI == nil {
			continue
		}
		for _, item := range volume.DownwardAPI.Items {
			if item.Path == name && item.FieldRef != nil {
				return annotation(pod, item.FieldRef.FieldPath)
			}
		}
	}
	return ""
}

func annotation(pod *corev1.Pod, field string) string {
	key, _ := strings.CutPrefix(field, "metadata.annotations['")
	return pod.Annotations[strings.TrimSuffix(key, "']")]
}

// Finished returns the status of a pod all of whose containers have ended with success.
func Finished(pod *corev1.Pod, now metav1.Time) corev1.PodStatus {
	status := corev1.PodStatus{Phase: corev1.PodSucceeded, StartTime: &now}
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady} {
		condition := corev1.PodCondition{Type: kind, Status: corev1.ConditionFalse, Reason: "PodCompleted", LastTransitionTime: now}
		if kind == corev1.PodInitialized {
			condition.Status = corev1.ConditionTrue
		}
		status.Conditions = append(status.Conditions, condition)
	}
	for _, kept := range pod.Status.Conditions {
		if kept.Type == corev1.PodScheduled {
			status.Conditions = append(status.Conditions, kept)
		}
	}
	for _, c := range pod.Spec.Containers {
		id := "bench://" + string(pod.UID) + "/" + c.Name
		status.ContainerStatuses = append(status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, Image: c.Image, ContainerID: id,
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				Reason: "Completed", StartedAt: now, FinishedAt: now, ContainerID: id,
			}},
		})
	}
	return status
}
