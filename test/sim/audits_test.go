package sim_test

import (
	"maps"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

var auditPeople = []act{{"an administrator's audit deletes a volume", (*world).fixVolume}}

// fixVolume creates the Job by which an audit deletes a volume. The audit has looked long ago, so that anything may stand for the volume now: it is for the
// dispatcher to see.
func (w *world) fixVolume() string {
	volumes := slices.Sorted(maps.Keys(w.volumes()))
	if len(volumes) == 0 || w.admission.full == "jobs" {
		return ""
	}
	uid := pickOne(w, volumes)
	claim := w.claimsEver()[uid]
	cfg, usable := w.configOf(classOf(claim))
	if !usable {
		return ""
	}
	number := 1
	for _, job := range fakecluster.List[*batchv1.Job](w) {
		if record := runs.RecordOf(job, uid); record.Verb == contract.Delete {
			number = max(number, record.Number+1)
		}
	}
	left := contract.Listed{UID: uid, Volume: uid, Size: 1 << 30, Namespace: claim.Namespace, Name: claim.Name}
	job, err := jobs.Fix(cfg, left, number, jobs.Cluster{KubeAPI: kubeAPI}, contract.ProvisionerName)
	if err != nil {
		w.T.Fatal(err)
	}
	w.Server.LoseAnswer(nil)
	return fakecluster.Create(w, fakecluster.Admin, job).Name + " of " + claim.Name
}

// configOf returns the config of a class, and whether a volume may be deleted by it.
func (w *world) configOf(c class) (config.Config, bool) {
	cm := fakecluster.Get[*corev1.ConfigMap](w, c.namespace(), c.name)
	stored := fakecluster.Get[*storagev1.StorageClass](w, "", c.name)
	if cm == nil || stored == nil || c.namespace() == further && w.terminating {
		return config.Config{}, false
	}
	cfg, faults := config.Parse(config.SourceOf(cm, stored), contract.ProvisionerName)
	return cfg, len(faults) == 0 && cfg.Supports(contract.Delete)
}
