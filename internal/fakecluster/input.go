package fakecluster

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// input is what a container reads from its files.
type input struct {
	requests []contract.Request
	pvs      []*corev1.PersistentVolume // in the order of the requests
}

// inputOf returns what the container of a pod, or of a Job's pods, reads.
func (c *Cluster) inputOf(name string, meta *metav1.ObjectMeta, spec *corev1.PodSpec) input {
	in, err := readInput(meta, spec)
	if err != nil {
		c.T.Fatalf("the files of %s: %v", name, err)
	}
	return in
}

func readInput(meta *metav1.ObjectMeta, spec *corev1.PodSpec) (input, error) {
	requests, err := contract.DecodeRequests([]byte(file(meta, spec, contract.RequestFile)))
	if err != nil {
		return input{}, err
	}
	list := struct {
		Items []*corev1.PersistentVolume `json:"items"`
	}{Items: []*corev1.PersistentVolume{{}}}
	var content any = list.Items[0]
	if len(requests.Items) > 1 {
		content = &list
	}
	if err := json.Unmarshal([]byte(file(meta, spec, contract.PVFile)), content); err != nil {
		return input{}, err
	}
	if len(list.Items) != len(requests.Items) {
		return input{}, fmt.Errorf("%d PVs for %d requests", len(list.Items), len(requests.Items))
	}
	return input{requests.Items, list.Items}, nil
}

// file returns what the kubelet writes into a file of a downward API volume.
func file(meta *metav1.ObjectMeta, spec *corev1.PodSpec, name string) string {
	for _, volume := range spec.Volumes {
		if volume.DownwardAPI == nil {
			continue
		}
		for _, item := range volume.DownwardAPI.Items {
			annotation, isOne := strings.CutPrefix(item.FieldRef.FieldPath, "metadata.annotations['")
			if isOne && item.Path == path.Base(name) {
				return meta.Annotations[strings.TrimSuffix(annotation, "']")]
			}
		}
	}
	return ""
}

// MembersOf returns the UIDs of the claims that a pod is for, in order.
func (c *Cluster) MembersOf(pod *corev1.Pod) []string {
	if known, found := c.members[pod.UID]; found {
		return known
	}
	var uids []string
	for _, request := range c.inputOf(pod.Name, &pod.ObjectMeta, &pod.Spec).requests {
		uids = append(uids, request.UID)
	}
	c.members[pod.UID] = uids
	return uids
}

// UIDsOf returns the UIDs of the claims that a Job is for, in order. It has none if the dispatcher
// has not made it.
func UIDsOf(job *batchv1.Job) []string {
	in, err := readInput(&job.Spec.Template.ObjectMeta, &job.Spec.Template.Spec)
	if err != nil {
		return nil
	}
	var uids []string
	for _, request := range in.requests {
		uids = append(uids, request.UID)
	}
	return uids
}

// VerbOf returns the verb that a container is called with, its last argument.
func VerbOf(spec *corev1.PodSpec) string {
	for _, container := range spec.Containers {
		if n := len(container.Args); container.Name == contract.Container && n > 0 {
			return container.Args[n-1]
		}
	}
	return ""
}
