package plugin

import (
	"cmp"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// remediesOfUser are what the user of a claim that has no volume can do, by the reason of the event:
// docs/troubleshoot.md has the same for users. What only an administrator can do is not here.
var remediesOfUser = map[string]string{
	reason.SourceNotFound: "create the source. Or delete this claim, and create it with another source",
	reason.SourceNotBound: "find out why the source is not bound, by kubectl flex why. The clone is made when it is",
	reason.SourceRefused: "create a ReferenceGrant in the namespace of the source. If the cause names a provisioner," +
		" delete the claim, and create it with a class of that provisioner",
	reason.SourceModeDiffers:    "delete the claim, and create it with the volumeMode of its source",
	reason.SnapshotNotSupported: "delete the claim, and create it as the clone of a claim",
	reason.DataSourceNotSupported: "delete the claim, and create it without a source, or with a class that clones." +
		" An administrator knows which class does",
	reason.SelectorNotSupported:        "delete the claim, and create it without the selector",
	reason.AttributesClassNotSupported: "delete the claim, and create it without volumeAttributesClassName",
	reason.NamespaceNotListed: "delete the claim, and create it with another class. Or ask an administrator to" +
		" let the namespace use this one",
}

// remedyOfUser returns what the user of a claim can do about a failure, or nothing. Whoever may create
// events can forge one, so that its reason only chooses among these words, and none of them deletes a
// claim that has a volume.
func remedyOfUser(r *Report, claim *corev1.PersistentVolumeClaim) string {
	failedRun := r.Reason == reason.ProvisioningFailed || r.Reason == reason.VolumeResizeFailed || r.Reason == reason.Stalled
	switch {
	case claim.Spec.VolumeName != "" && failedRun && isRefusedSize(claim):
		return remediesOfVerbs[contract.Expand][contract.BadRequest]
	case claim.Spec.VolumeName != "":
		return ""
	case failedRun:
		return remediesOfVerbs[contract.Provision][lastVerdict(claim)]
	default:
		return remediesOfUser[r.Reason]
	}
}

// isRefusedSize reports whether the storage has refused the size that a claim requests.
func isRefusedSize(claim *corev1.PersistentVolumeClaim) bool {
	return claim.Status.AllocatedResourceStatuses[corev1.ResourceStorage] == corev1.PersistentVolumeClaimControllerResizeInfeasible
}

// lastVerdict returns the verdict of the last run for a claim that its annotations report as failed,
// or nothing.
func lastVerdict(claim *corev1.PersistentVolumeClaim) contract.Verdict {
	code, err := strconv.Atoi(claim.Annotations[contract.AnnExitCode])
	if err != nil || claim.Annotations[contract.AnnResult] != "failed" {
		return ""
	}
	return contract.VerdictOf(code)
}

// isOfDispatcher reports whether an event names the provisioner of a claim as its reporter. Kubernetes
// has an event ProvisioningFailed, too.
func isOfDispatcher(e *corev1.Event, claim *corev1.PersistentVolumeClaim) bool {
	return e.ReportingController == cmp.Or(pvs.ProvisionerOf(claim), contract.ProvisionerName)
}

// volumeController is the reporter of Kubernetes' own events about claims, in kube-controller-manager.
const volumeController = "persistentvolume-controller"

// failToUser says that an event is in the way. The reason of another reporter than the dispatcher is
// no heading of docs/troubleshoot.md.
func (r *Report) failToUser(claim *corev1.PersistentVolumeClaim, e *corev1.Event) {
	r.failBy(e)
	if isOfDispatcher(e, claim) {
		return
	}
	by := cmp.Or(e.ReportingController, e.Source.Component)
	r.Reason, r.Cause = "", "an event of "+quote.Name(by)+" says: "+textOf(e)
	if by == volumeController && e.Reason == reason.ProvisioningFailed && claim.Spec.VolumeName == "" {
		r.Remedy = "if the class of the claim does not exist, delete the claim, and create it with one that does." +
			" Else ask an administrator"
	}
}
