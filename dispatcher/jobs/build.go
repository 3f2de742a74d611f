// Package jobs turns a config and a request into a Job, and a Job and its pods back into what became
// of it. It is pure.
package jobs

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/contract"
)

// Plan is all that a Job is built from.
type Plan struct {
	Config  config.Config
	Verb    contract.Verb
	Request contract.Request
	// PV is the skeleton on provision and undo, the real PV on delete and expand.
	PV *corev1.PersistentVolume
	// Hash of what the claim asks for.
	Hash string
	// Number of the Job among the claim's Jobs of this verb, Attempt the counted runs so far with this
	// one, After the number of the newest provision Job, on a delete.
	Number, Attempt, After int
	// Clean: nothing of the claim's can be in the storage yet.
	Clean bool
	// Anywhere: the node that the run should go to has gone, and it runs on any.
	Anywhere bool
	// KubeAPI is the API server's URL, for images that know nothing but their environment.
	KubeAPI string
}

// Name is the Job's name: a second dispatcher that plans the same run collides with the first.
func Name(verb contract.Verb, uid string, number int) string {
	return fmt.Sprintf("%s-%s-%d", verb, uid, number)
}

// Build makes the Job of a plan. It fails only on a pod template that cannot be merged.
func Build(p Plan) (*batchv1.Job, error) {
	template, err := podTemplate(p)
	if err != nil {
		return nil, err
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name:       Name(p.Verb, p.Request.UID, p.Number),
			Namespace:  p.Config.Source.Namespace,
			Labels:     labels(p),
			Finalizers: []string{contract.FinalizerRecord},
			Annotations: map[string]string{
				contract.AnnUIDs:        p.Request.UID,
				contract.AnnNamespace:   p.Request.Namespace,
				contract.AnnRequestHash: p.Hash,
				contract.AnnRevision:    p.Config.Source.Revision(),
				contract.AnnAttempt:     strconv.Itoa(p.Attempt),
				contract.AnnAfter:       strconv.Itoa(p.After),
				contract.AnnNode:        p.Request.SelectedNode,
				contract.AnnVolume:      string(p.PV.UID),
				contract.AnnClean:       strconv.FormatBool(p.Clean),
			},
		},
		Spec: batchv1.JobSpec{
			BackoffLimit:          new(int32(0)),
			PodReplacementPolicy:  new(batchv1.Failed),
			ActiveDeadlineSeconds: new(seconds(p.Config.Timeout + slack)),
			PodFailurePolicy:      failOnDisruption(),
			Template:              template,
		},
	}
	if p.Anywhere {
		job.Annotations[contract.AnnAnywhere] = "true"
	}
	if p.Config.Writer == config.DispatcherWrites {
		job.Annotations[contract.AnnWriter] = string(config.DispatcherWrites)
	}
	return job, nil
}

func labels(p Plan) map[string]string {
	return map[string]string{
		contract.LabelManagedBy: contract.ManagedBy,
		contract.LabelClaimUID:  p.Request.UID,
		contract.LabelVerb:      string(p.Verb),
		contract.LabelClass:     config.ClassLabel(p.Config.Source.Class),
	}
}

// slack is how much later the Job's own deadline is than its pod's: the Job controller deletes the pods of
// a Job that is late, and with them the kubelet's word on whether the container ever ran.
const slack = time.Minute

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// failOnDisruption ends the Job with a pod that was drained or preempted, and the dispatcher launches another,
// uncounted. A pod replaced within its Job would leave no trace, and what the first had made would be taken for
// nothing when the second never started.
func failOnDisruption() *batchv1.PodFailurePolicy {
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action: batchv1.PodFailurePolicyActionFailJob,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
			{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
		},
	}}}
}

// encode writes what the pod finds in its two files.
func encode(p Plan) (requests, pv string, err error) {
	requests, err = contract.Requests{
		Version: contract.Version, Verb: p.Verb, Items: []contract.Request{p.Request},
	}.Encode()
	if err != nil {
		return "", "", err
	}
	out := p.PV.DeepCopy()
	out.ManagedFields = nil
	out.APIVersion, out.Kind = "v1", "PersistentVolume"
	b, err := json.Marshal(out)
	if err != nil {
		return "", "", fmt.Errorf("encode the PersistentVolume %s: %w", out.Name, err)
	}
	return requests, string(b), nil
}
