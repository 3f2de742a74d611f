package jobs

import (
	"encoding/json"
	"fmt"
	"maps"
	"strconv"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// Plan is everything that a Job is built from.
type Plan struct {
	Config      config.Config
	Provisioner string
	Verb        contract.Verb
	Request     contract.Request
	// PV is the skeleton on provision and undo, the real PV on delete and expand.
	PV *corev1.PersistentVolume
	// Hash of what the claim asks for.
	Hash string
	// Number is the number of the Job among the claim's Jobs of this verb. Attempt counts the
	// attempts so far, this one included. After is the number of the newest provision Job, on a
	// delete.
	Number, Attempt, After int
	// NothingBefore is set if nothing for the claim can be in the storage yet.
	NothingBefore bool
	// Rival is the PV that may stand for the volume of an earlier provision, empty for none.
	Rival string
	// LeftBehind is why what an earlier run may have made stays in the storage, empty if nothing does.
	LeftBehind string
	// Since is when the first run for the claim was created after which something may be in the
	// storage; zero: this one is the first.
	Since time.Time
	// AnyNode is set if the node that the run should go to no longer exists, so that the run goes
	// to any node.
	AnyNode bool
	// Taints are those of the node that the run must go to.
	Taints []corev1.Taint
	// KubeAPI is the API server's URL, for images that read only their environment.
	KubeAPI string
	// Parallel is how many scripts flex runs at a time, 0 or 1 for one.
	Parallel int
	// With are the plans of the other requests that the Job serves. All have the Config, the Verb,
	// the nodes and the Number of the first.
	With []Plan
}

// Name returns the name of a Job. A second dispatcher that plans the same run collides with the
// first. A batch is named after its first claim only.
func Name(verb contract.Verb, uid string, number int) string {
	return fmt.Sprintf("%s-%s-%d", verb, uid, number)
}

// Build returns the Job of a plan. It fails only on a pod template that cannot be merged.
func Build(p Plan) (*batchv1.Job, error) {
	template, err := podTemplate(p)
	if err != nil {
		return nil, err
	}
	record, err := annotations(p)
	if err != nil {
		return nil, err
	}
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Name:        Name(p.Verb, p.Request.UID, p.Number),
			Namespace:   p.Config.Source.Namespace,
			Labels:      jobLabels(p, template.Labels),
			Finalizers:  []string{FinalizerRecord},
			Annotations: record,
		},
		Spec: batchv1.JobSpec{
			BackoffLimit:          new(int32(0)),
			PodReplacementPolicy:  new(batchv1.Failed),
			ActiveDeadlineSeconds: new(seconds(p.Config.Timeout + Slack)),
			PodFailurePolicy:      failOnDisruption(),
			Template:              template,
		},
	}
	return job, nil
}

func labels(p Plan) map[string]string {
	out := map[string]string{
		config.LabelManagedBy:   config.ManagedBy,
		config.LabelProvisioner: config.ProvisionerLabel(p.Provisioner),
		contract.LabelClaimUID:  p.Request.UID,
		LabelVerb:               string(p.Verb),
		config.LabelClass:       config.ClassLabel(p.Config.Source.Class),
	}
	if len(p.With) > 0 {
		out[LabelUIDs] = hashOfUIDs(uidsText(p))
	}
	if p.Parallel > 1 {
		out[LabelParallel] = strconv.Itoa(p.Parallel)
	}
	for _, pv := range p.sources() {
		out[LabelSource+SourceKey(pv)] = ""
	}
	return out
}

// ParallelOf returns how many programs of images or scripts work at a time in the pod of a Job, or in
// a pod of one.
func ParallelOf(o metav1.Object) int {
	n, err := strconv.Atoi(o.GetLabels()[LabelParallel])
	if err != nil || n < 1 {
		return 1
	}
	return min(n, config.ScriptsAtOnce)
}

// jobLabels returns the labels of a Job: those of its pod, with a template's, since queues like
// Kueue look for theirs on the Job, and those by which the claims' Jobs are found.
func jobLabels(p Plan, ofPod map[string]string) map[string]string {
	out := maps.Clone(ofPod)
	for _, one := range p.all() {
		out[LabelMember+one.Request.UID] = ""
	}
	return out
}

// annotations returns the record of every claim that the Job serves.
func annotations(p Plan) (map[string]string, error) {
	var all []Record
	head := Head{Nodes: Nodes(p), Scheduling: Scheduling(p.Config), Sources: p.sources()}
	for _, one := range p.all() {
		all = append(all, one.record())
	}
	text, err := encodeRecords(head, all)
	return map[string]string{AnnUIDs: uidsText(p), contract.AnnRevision: p.Config.Source.Revision(), AnnRecord: text}, err
}

// record returns what a Job records of one request.
func (p Plan) record() Record {
	r := p.Request
	return Record{
		ClaimUID: r.UID, Namespace: r.Namespace, Name: r.Name, Class: r.Class, ReclaimPolicy: r.ReclaimPolicy, Undo: r.Undo, Size: r.Size,
		Hash: p.Hash, Attempt: p.Attempt, After: p.After, Volume: string(p.PV.UID), NothingBefore: p.NothingBefore, Since: p.Since.UTC(), Rival: p.Rival, LeftBehind: p.LeftBehind,
		Node: r.SelectedNode, AnyNode: p.AnyNode, DescribesPV: p.Config.Writer == config.DispatcherWrites,
	}
}

// Slack is how much later the Job's own deadline is than its pod's. The Job controller deletes the
// pods of a Job that is late, and with them the kubelet's report of whether the container ever ran.
// The Job's deadline also counts while the pod is gated, the pod's does not.
const Slack = 10 * time.Minute

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// failOnDisruption makes the Job fail with a pod that was drained or preempted, and the dispatcher
// launches another Job, which is not counted as an attempt. If the pod were replaced within its
// Job, nothing would show that it had run: when the second pod never started, the run would count
// as one that made nothing.
func failOnDisruption() *batchv1.PodFailurePolicy {
	return &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{
		Action: batchv1.PodFailurePolicyActionFailJob,
		OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
			{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue},
		},
	}}}
}

// encode returns what the pod finds in its two files. Only a batch has a List of PVs, so that a
// script that serves one request need not know lists.
func encode(p Plan) (requests, pv string, err error) {
	file := contract.Requests{Version: contract.Version, Verb: p.Verb}
	var pvs []*corev1.PersistentVolume
	for _, one := range p.all() {
		out := one.PV.DeepCopy()
		out.ManagedFields = nil
		out.APIVersion, out.Kind = "v1", "PersistentVolume"
		file.Items, pvs = append(file.Items, one.Request), append(pvs, out)
	}
	if requests, err = file.Encode(); err != nil {
		return "", "", err
	}
	var content any = pvs[0]
	if len(pvs) > 1 {
		content = VolumeList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: pvs}
	}
	b, err := json.Marshal(content)
	if err != nil {
		return "", "", fmt.Errorf("encode the PersistentVolume %s: %w", pvs[0].Name, err)
	}
	return requests, string(b), nil
}
