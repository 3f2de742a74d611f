package reason

// Reasons of events. Those of provisioning and of a resize are the ones that users know from other
// provisioners.
const (
	// Provisioning: a Job that provisions the volume has not ended for a while, or was launched on any
	// node.
	Provisioning = "Provisioning"
	// ProvisioningSucceeded: the PV exists. It is not said of a first attempt in a batch.
	ProvisioningSucceeded = "ProvisioningSucceeded"
	// ProvisioningFailed: a run failed: its verdict, the image's message for the user, the Job, and
	// the time of the next attempt.
	ProvisioningFailed = "ProvisioningFailed"
	// ContainerOutput: the last lines of a run's output.
	ContainerOutput = "ContainerOutput"
	// WaitingForConfig: no ConfigMap serves the class.
	WaitingForConfig = "WaitingForConfig"
	// AmbiguousConfig: several ConfigMaps claim the class, so the last valid revision of them serves,
	// or none does.
	AmbiguousConfig = "AmbiguousConfig"
	// ClassNotListed: the class names a ConfigMap that does not list it.
	ClassNotListed = "ClassNotListed"
	// NamespaceNotListed: the config does not list the claim's namespace.
	NamespaceNotListed = "NamespaceNotListed"
	// InvalidConfig: all faults of the config, by field.
	InvalidConfig = "InvalidConfig"
	// ConfigWarning: the config is used, but should be changed: a password in plain text, nodes that
	// any kubelet may join.
	ConfigWarning = "ConfigWarning"
	// ServiceAccountRefused: the config's ServiceAccount does not exist, or lacks the label.
	ServiceAccountRefused = "ServiceAccountRefused"
	// NamespaceNotServed: class or revision name a namespace that the dispatcher does not serve, or
	// in which it lacks permissions.
	NamespaceNotServed = "NamespaceNotServed"
	// ClaimLost: Kubernetes takes the claim for one that has lost its volume.
	ClaimLost = "ClaimLost"
	// SelectorNotSupported: a new volume cannot be made to match a selector.
	SelectorNotSupported = "SelectorNotSupported"
	// SnapshotNotSupported: only CSI drivers restore VolumeSnapshots.
	SnapshotNotSupported = "SnapshotNotSupported"
	// DataSourceNotSupported: the config does not say that its image can clone a claim.
	DataSourceNotSupported = "DataSourceNotSupported"
	// AttributesClassNotSupported: the claim has a volumeAttributesClassName, and the config does
	// not say that its PVs can have one.
	AttributesClassNotSupported = "AttributesClassNotSupported"
	// SourceNotFound: the claim to clone does not exist.
	SourceNotFound = "SourceNotFound"
	// SourceNotBound: the claim to clone is not bound yet.
	SourceNotBound = "SourceNotBound"
	// SourceRefused: the other namespace does not consent to the clone, or has no such claim.
	SourceRefused = "SourceRefused"
	// SourceModeDiffers: the claim to clone has another volumeMode.
	SourceModeDiffers = "SourceModeDiffers"
	// RunNotConfirmed: the pod of a Job waits for the dispatcher's confirmation for longer than
	// usual.
	RunNotConfirmed = "RunNotConfirmed"
	// LaunchFailed: the API server refused the Job.
	LaunchFailed = "LaunchFailed"
	// Stalled: max-attempts is reached.
	Stalled = "Stalled"
	// JobSuspended: the Job is suspended, by a queue or by hand.
	JobSuspended = "JobSuspended"
	// WaitingForSlot: a claim waits while as many Jobs of the class as max-parallel allows are at work.
	WaitingForSlot = "WaitingForSlot"
	// WaitingForNode: a pod was deleted, and its node does not confirm that it has ended.
	WaitingForNode = "WaitingForNode"
	// Undoing: what an abandoned run may have made is deleted.
	Undoing = "Undoing"
	// UndoFailed: an undo failed; it is tried again.
	UndoFailed = "UndoFailed"
	// LeftBehind: something stays in the storage, and the event says why: the image does not
	// support delete, the node no longer exists and the config says node-gone: forget, the PV had
	// the policy Retain or was removed by hand, or an administrator has given the record up.
	LeftBehind = "LeftBehind"
	// VolumeInDoubt: a PV does not prove the provision, or has a wrong name, or cannot be bound and
	// is retained or in use: nothing is deleted while it exists. Or several nodes have the hostname
	// by which it names the node of its volume: nothing runs for it.
	VolumeInDoubt = "VolumeInDoubt"
	// ResultNotShown: a webhook, a policy or RBAC refuses the annotations of a result on the claim;
	// everything else continues.
	ResultNotShown = "ResultNotShown"
	// WriteRefused: a webhook, a policy or RBAC refuses a write on a Job, its pod, a claim or a PV,
	// or takes away what was written.
	WriteRefused = "WriteRefused"
	// WriteFailed: a write has failed for a while with an error that may pass, such as a webhook
	// that does not answer.
	WriteFailed = "WriteFailed"
	// Rescheduling: its node has no room, now or a moment ago, never started the Job or no longer
	// exists: the annotation volume.kubernetes.io/selected-node is removed, and the scheduler
	// selects again. The record of the run before says so first.
	Rescheduling = "Rescheduling"
	// NodeGone: the node of the volume, or of what may have been made, no longer exists, and the
	// config has node-gone: wait (or forget, for an expand).
	NodeGone = "NodeGone"
	// VolumeWithdrawn: the PV that an image wrote can never be bound to the claim; it is deleted
	// with its volume, and the claim is provisioned again.
	VolumeWithdrawn = "VolumeWithdrawn"
	// VolumeDiffers: the claim can use the PV, but it is not what was asked for.
	VolumeDiffers = "VolumeDiffers"
	// Deleting: a Job has deleted the volume, or is at work, as Provisioning says of a provision.
	Deleting = "Deleting"
	// VolumeFailedDelete: the delete failed; it is tried again.
	VolumeFailedDelete = "VolumeFailedDelete"
	// VolumeInUse: a node still has the volume of a released PV attached, so it is not deleted yet.
	VolumeInUse = "VolumeInUse"
	// VolumeKept: the claim of a volume was deleted, and the volume is not yet, since its config has
	// the key keep-deleted.
	VolumeKept = "VolumeKept"
	// DeleteNotSupported: the revision that made the volume does not support delete.
	DeleteNotSupported = "DeleteNotSupported"
	// RevisionMissing: the revision that made the volume does not exist, or nothing names it.
	RevisionMissing = "RevisionMissing"
	// RevisionDamaged: that ControllerRevision cannot be read, or lacks its label.
	RevisionDamaged = "RevisionDamaged"
	// RecordTooNew: a later dispatcher has written the record of a Job, in a version that this one
	// does not know: an upgrade was rolled back.
	RecordTooNew = "RecordTooNew"
	// Resizing: the first Job that expands the volume was launched, or a later one has not ended for a
	// while.
	Resizing = "Resizing"
	// VolumeResizeFailed: the expand failed.
	VolumeResizeFailed = "VolumeResizeFailed"
	// FileSystemResizeRequired: the volume was expanded, and its file system was not yet.
	FileSystemResizeRequired = "FileSystemResizeRequired"
	// VolumeResizeSuccessful: the claim has its size.
	VolumeResizeSuccessful = "VolumeResizeSuccessful"
	// ExpansionNotSupported: the class, or the revision that made the volume, does not support
	// expand.
	ExpansionNotSupported = "ExpansionNotSupported"
)
