package runs

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// RecordedRequest returns what a Job asked for on behalf of a claim: the request and the PV of its pod.
func RecordedRequest(annotations map[string]string, uid string) (contract.Request, *corev1.PersistentVolume, error) {
	requests, err := contract.DecodeRequests([]byte(annotations[jobs.AnnRequest]))
	if err != nil {
		return contract.Request{}, nil, err
	}
	i := slices.IndexFunc(requests.Items, func(r contract.Request) bool { return r.UID == uid })
	if i < 0 {
		return contract.Request{}, nil, fmt.Errorf("the Job holds %d requests, and none of the claim %s", len(requests.Items), uid)
	}
	pv, err := recordedPV([]byte(annotations[jobs.AnnPV]), i, len(requests.Items))
	return requests.Items[i], pv, err
}

// recordedPV returns the PV of the request with this index, in the order of the requests.
func recordedPV(file []byte, i, requests int) (*corev1.PersistentVolume, error) {
	list := jobs.VolumeList{Items: []*corev1.PersistentVolume{{}}}
	var content any = list.Items[0]
	if requests > 1 {
		content = &list
	}
	if err := json.Unmarshal(file, content); err != nil {
		return nil, fmt.Errorf("decode the Job's PersistentVolume: %w", err)
	}
	if len(list.Items) != requests || list.Items[i] == nil {
		return nil, fmt.Errorf("the Job holds %d PersistentVolumes for %d requests", len(list.Items), requests)
	}
	return list.Items[i], nil
}
