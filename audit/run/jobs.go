package run

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/resolve"
)

// managedBy marks the Jobs of an audit, and their pods. The dispatcher watches those that are
// marked as its own, so it does not see these, and they take none of its slots.
const managedBy = "flex-dispatcher-audit"

// keepJob is how long a Job is kept after its end whose audit was killed.
const keepJob = 5 * time.Minute

// Cluster is what images know of the cluster: the API server's URL, and the UID of the namespace
// kube-system.
type Cluster struct{ KubeAPI, UID string }

// listJob returns the Job that lists what the storage of a class has, on a node if that is given. It
// is about no claim, so it is named after the UID of the class's ConfigMap. Its container gets no token.
func listJob(c Class, node *corev1.Node, of Cluster) (*batchv1.Job, error) {
	plan := jobs.Plan{
		Config: c.Config, Verb: contract.List, PV: &corev1.PersistentVolume{}, KubeAPI: of.KubeAPI,
		Request: contract.Request{
			UID: c.UID, Class: c.Name, AccessModes: []string{}, ReclaimPolicy: c.Config.Source.Reclaim, ClusterUID: of.UID, Properties: c.Config.Properties,
		},
	}
	pin(&plan, node)
	job, err := build(plan)
	if err != nil {
		return nil, err
	}
	job.Name, job.GenerateName = nameOfList(c, node)
	spec := &job.Spec.Template.Spec
	spec.AutomountServiceAccountToken = new(false)
	return job, whyToken(c, spec.Volumes)
}

// pin lets a run go to a node, as the dispatcher's runs for a volume of that node do, if one is given.
func pin(plan *jobs.Plan, node *corev1.Node) {
	if node != nil {
		at := resolve.TopologyOfNode(node)
		at.SetOn(&plan.Request)
		plan.Taints = at.Taints
	}
}

// longestPart is how long the part of a Job's name that stands for its node may be: Kubernetes adds
// six letters to the name for the pod's, whose hostname has 63.
const longestPart = 15

// nameOfList returns the name of a Job that lists, or what the API server makes one of. Several
// audits may list a storage at once. Each node has one name, so that an audit that is started
// again and again leaves no more than one Job there.
func nameOfList(c Class, node *corev1.Node) (name, generate string) {
	prefix := string(contract.List) + "-" + c.UID + "-"
	if node == nil {
		return "", prefix
	}
	part := node.Name
	if len(part) > longestPart || len(validation.IsDNS1123Label(part)) > 0 {
		sum := sha256.Sum256([]byte(part))
		part = hex.EncodeToString(sum[:5]) // of two nodes with one name, the second waits for the first
	}
	return prefix + part, ""
}

// whyToken returns an error if volumes of a list's pod hold a token of its ServiceAccount: a list
// needs none.
func whyToken(c Class, volumes []corev1.Volume) error {
	for _, v := range volumes {
		if v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil }) {
			return fmt.Errorf("its config %s/%s has a serviceAccountToken in the volume %s of its pod-template, and the pod of a list gets no token. Remedy: remove that volume",
				c.Config.Source.Namespace, c.Config.Source.Name, quote.Name(v.Name))
		}
	}
	return nil
}

// deleteJob returns the Job that deletes an orphan, on the node that has listed it, if that is given.
// To the image it is an undo that is limited to the volume of that name: what a list says of its claim
// may be wrong. The number is the one that the dispatcher would give to its next delete for the claim,
// see Fix.
func (a *Auditor) deleteJob(c Class, v contract.Listed, node *corev1.Node, number int) (*batchv1.Job, error) {
	request := contract.Request{
		UID: v.UID, PVName: contract.PVName(v.UID), Namespace: v.Namespace, Name: v.Name, Class: c.Name, Size: v.Size,
		AccessModes: []string{}, ReclaimPolicy: c.Config.Source.Reclaim, ClusterUID: a.Cluster.UID, Undo: true, ListedVolume: v.Volume, Properties: c.Config.Properties,
	}
	plan := jobs.Plan{
		Config: c.Config, Provisioner: a.Provisioner, Verb: contract.Delete, Request: request, PV: pvs.Skeleton(request, c.Config, a.Provisioner), Number: number, KubeAPI: a.Cluster.KubeAPI,
	}
	pin(&plan, node)
	return build(plan)
}

// build returns a Job as the dispatcher builds it, gated like every other, but marked as an
// audit's. It is the record of nothing: nothing holds it or its pod.
func build(p jobs.Plan) (*batchv1.Job, error) {
	job, err := jobs.Build(p)
	if err != nil {
		return nil, err
	}
	template := &job.Spec.Template
	job.Finalizers, template.Finalizers = nil, nil
	delete(job.Annotations, jobs.AnnRecord)
	delete(job.Labels, jobs.LabelMember+p.Request.UID)
	for _, labels := range []map[string]string{job.Labels, template.Labels} {
		labels[config.LabelManagedBy] = managedBy
		delete(labels, config.LabelClass)
	}
	job.Spec.TTLSecondsAfterFinished = new(int32(keepJob / time.Second))
	return job, nil
}
