package contract

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Requests is the content of RequestFile. It has been a list since the first version, so that an
// image may declare a batch-size without a new format.
type Requests struct {
	Version string    `json:"version"`
	Verb    Verb      `json:"verb"`
	Items   []Request `json:"requests"`
}

// Request is one claim's request to the image.
type Request struct {
	// UID of the claim. Every name in the storage derives from it, so that a rerun finds what an
	// earlier run made.
	UID       string `json:"uid"`
	PVName    string `json:"pvName"`
	Namespace string `json:"claimNamespace"`
	Name      string `json:"claimName"`
	Class     string `json:"storageClass"`
	// Size in bytes, rounded up.
	Size         int64    `json:"size"`
	AccessModes  []string `json:"accessModes"`
	VolumeMode   string   `json:"volumeMode"`
	MountOptions []string `json:"mountOptions,omitempty"`
	// AttributesClass is the claim's volumeAttributesClassName.
	AttributesClass string `json:"volumeAttributesClass,omitempty"`
	ReclaimPolicy   string `json:"reclaimPolicy"`
	// SelectedNode is the node that the scheduler selected, with WaitForFirstConsumer. On delete
	// and expand it is the volume's node, if it has one. On list it is the node that is listed, if
	// the storage is on nodes.
	SelectedNode string `json:"selectedNode,omitempty"`
	// SelectedZone is that node's topology.kubernetes.io/zone.
	SelectedZone string `json:"selectedZone,omitempty"`
	// SelectedTopology holds the labels of that node that say where it is: zone, region and
	// hostname, by the labels' own names.
	SelectedTopology map[string]string `json:"selectedTopology,omitempty"`
	// AllowedTopologies of the class: alternatives, each a list of values by label. A volume must
	// be reachable from where one of them holds; if there is none, from anywhere.
	AllowedTopologies []map[string][]string `json:"allowedTopologies,omitempty"`
	Username          string                `json:"username,omitempty"`
	Group             string                `json:"group,omitempty"`
	// Undo is set on a delete of what a provision may have made although no PV was ever written, or
	// although no claim was ever bound to the PV.
	Undo bool `json:"undo,omitempty"`
	// ListedVolume is set on a delete of an audit: the volume, as the image has listed it. No other
	// is deleted, whatever carries the UID.
	ListedVolume string `json:"listedVolume,omitempty"`
	// ClusterUID is the UID of the namespace kube-system, which no two clusters share. It is empty
	// where it is not known.
	ClusterUID string `json:"clusterUID,omitempty"`
	// Source is what the volume is to be cloned from, nil for an empty volume.
	Source *Source `json:"source,omitempty"`
	// Labels and Annotations of the claim. Its owner can write anything here, so do not trust them.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// Properties of the config and parameters of the class, by their own names.
	Properties map[string]string `json:"properties,omitempty"`
}

// Encode returns the requests as the content of RequestFile.
func (r Requests) Encode() (string, error) {
	b, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("encode the requests: %w", err)
	}
	return string(b), nil
}

// DecodeRequests parses the content of RequestFile. It rejects another version and an unknown verb,
// and accepts unknown fields, since a newer dispatcher may add some.
func DecodeRequests(data []byte) (Requests, error) {
	var r Requests
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("decode the requests: %w", err)
	}
	return r, checkHeader(r.Version, r.Verb)
}

// DecodeRequest parses only the request of one claim. It returns the request's place and the number
// of all as well, and rejects what DecodeRequests rejects.
func DecodeRequest(data []byte, uid string) (request Request, i, n int, err error) {
	var r struct {
		Version string
		Verb    Verb
		Items   []json.RawMessage `json:"requests"`
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return request, 0, 0, fmt.Errorf("decode the requests: %w", err)
	}
	if err := checkHeader(r.Version, r.Verb); err != nil {
		return request, 0, 0, err
	}
	i = slices.IndexFunc(r.Items, func(item json.RawMessage) bool {
		var own struct{ UID string }
		return json.Unmarshal(item, &own) == nil && own.UID == uid
	})
	if i < 0 {
		return request, 0, 0, fmt.Errorf("none of the %d requests is for the claim %s", len(r.Items), uid)
	}
	if err := json.Unmarshal(r.Items[i], &request); err != nil {
		return request, 0, 0, fmt.Errorf("decode the request of the claim %s: %w", uid, err)
	}
	return request, i, len(r.Items), nil
}

func checkHeader(version string, verb Verb) error {
	if version != Version {
		return fmt.Errorf("decode the requests: the version is %q, and this image supports %q", version, Version)
	}
	if !verb.Known() {
		return fmt.Errorf("decode the requests: unknown verb %q", verb)
	}
	return nil
}
