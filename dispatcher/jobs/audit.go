package jobs

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

// Jobs that an administrator's audit makes. Like every other they are gated, and run when the dispatcher confirms them.

// keepList is how long the Job of a list is kept whose audit was killed before it had read it.
const keepList = 5 * time.Minute

// Cluster is what images know of the cluster: the API server's URL, and the UID of the namespace kube-system.
type Cluster struct{ KubeAPI, UID string }

// List returns the Job that lists what the storage of a class has. It is named after the UID of the class's ConfigMap, and is the record of no claim:
// nothing holds it or its pod. It has no label of a class, since it holds none of its slots. Its container gets no token.
func List(cfg config.Config, configUID string, number int, of Cluster) (*batchv1.Job, error) {
	job, err := Build(Plan{
		Config: cfg, Verb: contract.List, PV: &corev1.PersistentVolume{}, Number: number, Attempt: 1, KubeAPI: of.KubeAPI,
		Request: contract.Request{
			UID: configUID, Class: cfg.Source.Class, ReclaimPolicy: cfg.Source.Reclaim, ClusterUID: of.UID, Properties: cfg.Properties,
		},
	})
	if err != nil {
		return nil, err
	}
	template := &job.Spec.Template
	job.Finalizers, template.Finalizers = nil, nil
	job.Spec.TTLSecondsAfterFinished = new(int32(keepList / time.Second))
	delete(job.Labels, config.LabelClass)
	delete(template.Labels, config.LabelClass)
	template.Spec.AutomountServiceAccountToken = new(false)
	return job, nil
}

// Fix returns the Job that deletes a volume which stands for nothing any more. To image and dispatcher it is an undo, and it is the record of its claim until
// its outcome is on record. The record says which volume it is about.
func Fix(cfg config.Config, volume contract.Listed, number int, of Cluster, provisioner string) (*batchv1.Job, error) {
	request := contract.Request{
		UID: volume.UID, PVName: contract.PVName(volume.UID), Namespace: volume.Namespace, Name: volume.Name, Class: cfg.Source.Class, Size: volume.Size,
		ReclaimPolicy: cfg.Source.Reclaim, ClusterUID: of.UID, Undo: true, Properties: cfg.Properties,
	}
	return Build(Plan{
		Config: cfg, Verb: contract.Delete, Request: request, PV: pvs.Skeleton(request, cfg, provisioner), Number: number, Attempt: 1, KubeAPI: of.KubeAPI,
		Audit: volume.Volume,
	})
}
