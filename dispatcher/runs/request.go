package runs

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// ReadRequest returns what a Job asked for on behalf of a claim, by the annotations of the Job's
// pod. It also returns the PV that the Job was given with it: the skeleton of a provision, the real
// PV otherwise. Of a batch only this claim's request is decoded: each of its claims asks at every
// look.
func ReadRequest(annotations map[string]string, uid string) (contract.Request, *corev1.PersistentVolume, error) {
	request, i, n, err := contract.DecodeRequest([]byte(annotations[jobs.AnnRequest]), uid)
	if err != nil {
		return request, nil, err
	}
	pv, err := recordedPV([]byte(annotations[jobs.AnnPV]), i, n)
	return request, pv, err
}

// recordedPV returns the PV of the request with this index, in the order of the requests.
func recordedPV(file []byte, i, requests int) (*corev1.PersistentVolume, error) {
	list := struct {
		Items []json.RawMessage `json:"items"`
	}{Items: []json.RawMessage{file}}
	if requests > 1 {
		if err := json.Unmarshal(file, &list); err != nil {
			return nil, fmt.Errorf("decode the Job's PersistentVolumes: %w", err)
		}
	}
	if len(list.Items) != requests {
		return nil, fmt.Errorf("the Job has %d PersistentVolumes for %d requests", len(list.Items), requests)
	}
	var pv *corev1.PersistentVolume
	if err := json.Unmarshal(list.Items[i], &pv); err != nil {
		return nil, fmt.Errorf("decode the Job's PersistentVolume: %w", err)
	}
	if pv == nil {
		return nil, fmt.Errorf("the Job has no PersistentVolume for its request %d", i+1)
	}
	return pv, nil
}
