package observe

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// observeForged finds the Jobs from which no PV is created, whatever they have on record. A tenant
// who may create Jobs in one config namespace can name in one the class and the config of another.
// A claim of that class was once bound to a volume of the tenant's
// (TestNoPVIsCreatedFromAJobOfAnotherNamespaceThanItsConfigs). Where
// deploy/base/job-record-policy.yaml is applied, it refuses such a Job.
func (b *Observer) observeForged(_ context.Context, _ cluster.Reader, o *Observation) error {
	for _, r := range o.View.Runs {
		if r.Described == "" {
			continue
		}
		job := o.Jobs[r.Name]
		_, pv, err := runs.ReadRequest(job.Spec.Template.Annotations, string(o.UID))
		if err == nil && (!b.isOfItsConfig(job, pv) || !o.isOfClaim(pv)) { // a damaged one is refused when it is read
			revision, class := quote.Name(job.Annotations[contract.AnnRevision]), quote.Name(pv.Spec.StorageClassName)
			o.Forged[r.Name] = reason.Forged(job.Namespace, job.Name, revision, class, jobs.AnnForget+"="+string(o.UID))
		}
	}
	return nil
}

// isOfItsConfig reports whether a Job and the PV that it was given name a config revision that is
// stored in the Job's own namespace, and is of the PV's class. The dispatcher stores it before it
// creates the Job, and only in the namespace that the class names.
func (b *Observer) isOfItsConfig(job *batchv1.Job, pv *corev1.PersistentVolume) bool {
	name := job.Annotations[contract.AnnRevision]
	stored := b.Caches.Revisions.Named(name)
	return stored != nil && stored.Namespace == job.Namespace && pv.Annotations[contract.AnnRevision] == name &&
		cluster.ClassOfRevision(stored) == config.ClassLabel(pv.Spec.StorageClassName)
}

// isOfClaim reports whether a PV is the UID's, and of the class of its claim. Kubernetes binds a
// claim to the PV that names it, whatever the class of either.
func (o *Observation) isOfClaim(pv *corev1.PersistentVolume) bool {
	uid := string(o.UID)
	return pv.Name == contract.PVName(uid) && pv.Annotations[contract.AnnClaimUID] == uid && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == o.UID &&
		(o.Claim == nil || storagehelpers.GetPersistentVolumeClaimClass(o.Claim) == pv.Spec.StorageClassName)
}
