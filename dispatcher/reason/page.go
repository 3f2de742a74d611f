package reason

import (
	"slices"
	"strings"
)

// Headings returns the headings of docs/troubleshoot.md that are reasons: those that the dispatcher words, and
// those of Kubernetes for a Job that does not start or that the kubelet has ended. A test compares
// the two.
func Headings() []string {
	return []string{
		Provisioning, ProvisioningSucceeded, ProvisioningFailed, ContainerOutput, WaitingForConfig, AmbiguousConfig, ClassNotListed,
		NamespaceNotListed, InvalidConfig, ConfigWarning, ServiceAccountRefused, NamespaceNotServed,
		ClaimLost, SelectorNotSupported, SnapshotNotSupported,
		DataSourceNotSupported, AttributesClassNotSupported, SourceNotFound, SourceNotBound, SourceRefused, SourceModeDiffers,
		RunNotConfirmed, LaunchFailed, Stalled, JobSuspended, WaitingForSlot, WaitingForNode, Undoing, UndoFailed, LeftBehind,
		VolumeInDoubt, ResultNotShown, WriteRefused, WriteFailed, Rescheduling, NodeGone, VolumeWithdrawn, VolumeDiffers, Deleting,
		VolumeFailedDelete, VolumeInUse, VolumeKept, DeleteNotSupported, RevisionMissing, RevisionDamaged, RecordTooNew, Resizing, VolumeResizeFailed,
		FileSystemResizeRequired, VolumeResizeSuccessful, ExpansionNotSupported,

		"Unschedulable", "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "InspectFailed", "Failed",
		"CreateContainerConfigError", "FailedMount", "FailedCreate", "FailedCreatePodSandBox",
		"StartError", "ContainerCannotRun", "OutOfcpu", "OutOfmemory", "OutOfpods", "NodeAffinity", "Evicted", "UnexpectedAdmissionError",
		"OOMKilled", "DeadlineExceeded",
	}
}

// Page returns where the documentation says more about a reason, or nothing.
func Page(why string) string {
	if !slices.Contains(Headings(), why) {
		return ""
	}
	return "docs/troubleshoot.md#" + strings.ToLower(why)
}
