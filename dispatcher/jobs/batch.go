package jobs

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// VolumeList is the content of a batch's pv.json, in the order of the requests. The API has no such
// type for encoding.
type VolumeList struct {
	metav1.TypeMeta
	Items []*corev1.PersistentVolume `json:"items"`
}

// UIDs returns the UIDs of the claims that a Job serves, that of the first one at the beginning.
// Where a webhook has taken the annotation off, its labels name them.
func UIDs(job *batchv1.Job) []string { return uidsOf(job.Annotations[AnnUIDs], job.Labels) }

// UIDsOfPod returns the UIDs of the claims that a Job's pod serves. A pod that is no Job's of ours
// has none. One that an older dispatcher made has a label for each: during an upgrade it must block
// other runs, and its finalizer has to be removed, as with any other pod.
//
// A kubelet may write annotations of its pods, by pods/status, and no labels:
// podStatusStrategy.PrepareForUpdate in pkg/registry/core/pod/strategy.go keeps spec and owners,
// and NodeRestriction's admitPodStatus the labels. A pod that said it served thousands of claims
// held them all up, so the annotation of a batch counts only with the hash in its label. A kubelet
// may also create mirror pods with any label, but its Node is their controller (admitPodCreate).
func UIDsOfPod(pod *corev1.Pod) []string {
	if !servesClaims(pod) {
		return nil
	}
	text := pod.Annotations[AnnUIDs]
	if pod.Labels[LabelUIDs] != hashOfUIDs(text) {
		text = ""
	}
	return uidsOf(text, pod.Labels)
}

func servesClaims(pod *corev1.Pod) bool {
	owner := metav1.GetControllerOf(pod)
	return (owner == nil || owner.Kind == "Job") && pod.Labels[contract.LabelClaimUID] != ""
}

// SourcesOfPod returns the keys of the PVs whose volumes a Job's pod clones. One that an older
// dispatcher made has none, and its Job has the PVs.
func SourcesOfPod(pod *corev1.Pod) []string {
	if !servesClaims(pod) {
		return nil
	}
	return keysOf(pod.Labels, LabelSource)
}

// SourceKey returns the key of a PV as the source of a clone. A PV's name may be longer than that of
// a label.
func SourceKey(pv string) string { return hashOf(pv) }

func uidsOf(text string, labels map[string]string) []string {
	if text != "" {
		return strings.Split(text, ",")
	}
	first := labels[contract.LabelClaimUID]
	others := slices.DeleteFunc(keysOf(labels, LabelMember), func(uid string) bool { return uid == first })
	return append([]string{first}, others...)
}

// hashOfUIDs returns the label that proves a list of UIDs.
func hashOfUIDs(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// keysOf returns what has a label each, such as the UIDs of members.
func keysOf(labels map[string]string, prefix string) []string {
	var out []string
	for label := range labels {
		if key, ok := strings.CutPrefix(label, prefix); ok {
			out = append(out, key)
		}
	}
	slices.Sort(out)
	return out
}

// all returns the plan of every request, the first one's first.
func (p Plan) all() []Plan { return append([]Plan{p}, p.With...) }

// sources returns the PVs whose volumes the requests of a plan clone.
func (p Plan) sources() []string {
	var out []string
	for _, one := range p.all() {
		if one.Verb == contract.Provision && one.Request.Source != nil && !slices.Contains(out, one.Request.Source.PVName) {
			out = append(out, one.Request.Source.PVName)
		}
	}
	return out
}

// uidsText returns the UIDs of the claims of a plan as UIDs and UIDsOfPod read them.
func uidsText(p Plan) string {
	var out []string
	for _, one := range p.all() {
		out = append(out, one.Request.UID)
	}
	return strings.Join(out, ",")
}

// TrimToSize removes requests from the end of a batch until the pod's annotations are small enough.
func TrimToSize(p Plan) (Plan, error) {
	room := contract.MaxFiles
	for i, one := range p.all() {
		one.With = nil
		requests, pv, err := encode(one)
		if err != nil {
			return p, err
		}
		if room -= len(requests) + len(pv); room < 0 && i > 0 {
			p.With = p.With[:i-1]
			break
		}
	}
	return p, nil
}

// InOrder returns Jobs by their names, so that the same is written in the same order again.
func InOrder(all map[string]*batchv1.Job) []*batchv1.Job {
	out := make([]*batchv1.Job, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		out = append(out, all[name])
	}
	return out
}
