package jobs

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// VolumeList is the content of a batch's pv.json, in the order of the requests. The API has no such type for
// encoding.
type VolumeList struct {
	metav1.TypeMeta
	Items []*corev1.PersistentVolume `json:"items"`
}

// UIDs returns the UIDs of the claims that a Job serves.
func UIDs(job *batchv1.Job) []string { return strings.Split(job.Annotations[AnnUIDs], ",") }

// Members returns the UIDs of the claims that a Job or its pod serves, by its labels, in any order.
func Members(labels map[string]string) []string {
	var out []string
	for label := range labels {
		if uid, member := strings.CutPrefix(label, LabelMember); member {
			out = append(out, uid)
		}
	}
	return out
}

// Key returns the key under which a Job carries an annotation of a claim: the plain one if it serves no other claim.
func Key(job *batchv1.Job, uid, annotation string) string {
	return keyOf(strings.Contains(job.Annotations[AnnUIDs], ","), uid, annotation)
}

func keyOf(isBatch bool, uid, annotation string) string {
	if !isBatch {
		return annotation
	}
	return MemberAnnotation(uid, annotation)
}

// all returns the plan of every request, the first one's first.
func (p Plan) all() []Plan { return append([]Plan{p}, p.With...) }

func uidsOf(plans []Plan) []string {
	var out []string
	for _, p := range plans {
		out = append(out, p.Request.UID)
	}
	return out
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
