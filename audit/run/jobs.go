package run

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

// managedBy marks the Jobs of an audit, and their pods. The dispatcher watches those that are
// marked as its own, so it does not see these, and they take none of its slots.
const managedBy = "flex-dispatcher-audit"

// keepJob is how long a Job is kept after its end whose audit was killed.
const keepJob = 5 * time.Minute

// Cluster is what images know of the cluster: the API server's URL, and the UID of the namespace
// kube-system.
type Cluster struct{ KubeAPI, UID string }

// listJob returns the Job that lists what the storage of a class has. It is about no claim, so it
// is named after the UID of the class's ConfigMap. Its container gets no token.
func listJob(c Class, of Cluster) (*batchv1.Job, error) {
	job, err := build(jobs.Plan{
		Config: c.Config, Verb: contract.List, PV: &corev1.PersistentVolume{}, KubeAPI: of.KubeAPI,
		Request: contract.Request{
			UID: c.UID, Class: c.Name, AccessModes: []string{}, ReclaimPolicy: c.Config.Source.Reclaim, ClusterUID: of.UID, Properties: c.Config.Properties,
		},
	})
	if err != nil {
		return nil, err
	}
	job.Name, job.GenerateName = "", string(contract.List)+"-"+c.UID+"-" // several audits may list at once
	spec := &job.Spec.Template.Spec
	spec.AutomountServiceAccountToken = new(false)
	return job, whyToken(c, spec.Volumes)
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

// deleteJob returns the Job that deletes an orphan. To the image it is an undo that is limited to
// the volume of that name: what a list says of its claim may be wrong. The number is the one that
// the dispatcher would give to its next delete for the claim, see Fix.
func deleteJob(c Class, v contract.Listed, number int, of Cluster, provisioner string) (*batchv1.Job, error) {
	request := contract.Request{
		UID: v.UID, PVName: contract.PVName(v.UID), Namespace: v.Namespace, Name: v.Name, Class: c.Name, Size: v.Size,
		AccessModes: []string{}, ReclaimPolicy: c.Config.Source.Reclaim, ClusterUID: of.UID, Undo: true, ListedVolume: v.Volume, Properties: c.Config.Properties,
	}
	return build(jobs.Plan{
		Config: c.Config, Provisioner: provisioner, Verb: contract.Delete, Request: request, PV: pvs.Skeleton(request, c.Config, provisioner), Number: number, KubeAPI: of.KubeAPI,
	})
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
