// Package contract is the agreement between the dispatcher and a provisioning image: the names, the
// verbs, the request, the files and the exit codes of version flex-provisioner.io/v1. docs/contract.md
// documents it for people. It is plain Go and imports nothing of Kubernetes, so that an image written
// in Go can import it alone.
package contract

// Version names the contract that a Job was built under; it stands in every request file.
const Version = "flex-provisioner.io/v1"

// Domain is the prefix of every label, annotation and finalizer of ours.
const Domain = "flex-provisioner.io/"

// Names of provisioners.
const (
	// ProvisionerName is what a StorageClass writes as its provisioner, unless the dispatcher runs
	// with another --provisioner-name.
	ProvisionerName = Domain + "dispatcher"
	// OldPluginName is accepted as a config's plugin-name, because the original design used it. It can
	// never be a StorageClass's provisioner: the PV controller takes every kubernetes.io/ name for an
	// in-tree plugin and fails the claim.
	OldPluginName = "kubernetes.io/flex-provisioner"
)

// Labels of a provisioner ConfigMap.
const (
	LabelType         = "type"
	TypeConfig        = "provisioner-config"
	LabelStorageClass = "storage-class"
)

// Labels of the objects that the dispatcher makes or requires.
const (
	// LabelManagedBy marks Jobs, their pods and config revisions as the dispatcher's.
	LabelManagedBy = "app.kubernetes.io/managed-by"
	// ManagedBy is the value of LabelManagedBy.
	ManagedBy = "flex-dispatcher"
	// LabelClaimUID holds the UID of the claim after which a Job is named, on the Job and on its pods.
	LabelClaimUID = Domain + "claim-uid"
	// LabelMember and a claim's UID are a label, without a value, of every Job that serves the claim, and of
	// its pods: by it all Jobs of a claim are found.
	LabelMember = "claim." + Domain
	// LabelVerb holds the verb of a Job, on the Job and on its pods.
	LabelVerb = Domain + "verb"
	// LabelClass holds a hash of the storage class's name, since a class's name may be longer than a
	// label's value.
	LabelClass = Domain + "class"
	// LabelProvisioner must be "true" on a ServiceAccount before a config may name it.
	LabelProvisioner = Domain + "provisioner"
)

// Annotations of a PersistentVolume.
const (
	// AnnClaimUID is the claim's UID. Its presence on the PV of the claim's name is the proof of a
	// finished provision.
	AnnClaimUID = Domain + "claim-uid"
	// AnnRevision is "namespace/name" of the ControllerRevision that made the volume; delete and expand
	// run with it.
	AnnRevision = Domain + "config-revision"
	// AnnProvisionedBy is Kubernetes' own. Without it the PV controller would mark the PV Failed
	// instead of Released when its claim goes.
	AnnProvisionedBy = "pv.kubernetes.io/provisioned-by"
	// AnnFileSystem is written by whoever has grown the file system on a volume by hand, where the
	// kubelet does not: the size that it has now.
	AnnFileSystem = Domain + "file-system-size"
)

// AnnUnusedSince marks a config revision that nothing names any more, with the time since when (RFC 3339).
// It is deleted an hour later, unless something names it again.
const AnnUnusedSince = Domain + "unused-since"

// Annotations of a Job, read back as the record of its claim.
const (
	// AnnUIDs lists the UIDs of the claims that the Job serves, separated by commas.
	AnnUIDs = Domain + "uids"
	// AnnNamespace is the namespace of the claim: namespaces take turns. Of a batch, the first claim's.
	AnnNamespace = Domain + "claim-namespace"
	// AnnRequestHash is the hash of what the claim asks for.
	AnnRequestHash = Domain + "request-hash"
	// AnnAttempt is the number of counted runs of this verb for this claim, this one included.
	AnnAttempt = Domain + "attempt"
	// AnnAfter is, on a delete Job, the number of the newest provision Job that it undoes.
	AnnAfter = Domain + "after"
	// AnnVolume is, on a delete Job, the UID of the PV whose volume it deletes; empty on an undo.
	AnnVolume = Domain + "volume"
	// AnnClean is "true" on a provision Job before which nothing of the claim's can have been in the
	// storage.
	AnnClean = Domain + "clean"
	// AnnWriter is "dispatcher" on a Job whose container does not write its PV.
	AnnWriter = Domain + "write-pv"
	// AnnNode is the node that the run was meant for, where the claim or the volume names one.
	AnnNode = Domain + "node"
	// AnnAnywhere is "true" on a Job that runs without regard to the volume's node, which has gone.
	AnnAnywhere = Domain + "any-node"
	// AnnOutcome is the outcome of the run, as JSON, written once it was recorded.
	AnnOutcome = Domain + "outcome"
	// AnnWaived is "true" of a claim that does not need its batch, whose Job has not started, any more.
	AnnWaived = Domain + "waived"
	// AnnReleased is "true" of a claim whose record in a batch has done its work, while another's has not.
	AnnReleased = Domain + "released"
)

// MemberAnnotation is the key under which a Job that serves several claims carries an annotation of one of
// them.
func MemberAnnotation(uid, annotation string) string { return uid + "." + annotation }

// Annotations of a Job's pod, mounted as files by the downward API.
const (
	AnnRequest = Domain + "request"
	AnnPV      = Domain + "pv"
)

// Annotations of a claim. They are output: the dispatcher never reads them, since users can edit them.
const (
	AnnProvisionTS = Domain + "provision-ts" // when the newest run ended, RFC 3339
	AnnAttempts    = Domain + "attempts"
	AnnResult      = Domain + "result" // "succeeded" or "failed"
	AnnExitCode    = Domain + "exit-code"
	AnnMessage     = Domain + "message"
	// AnnResizer is Kubernetes' own: who grows the claim's volume.
	AnnResizer = "volume.kubernetes.io/storage-resizer"
)

// Finalizers.
const (
	// FinalizerRecord keeps a Job, which is the claim's record, until its volume is proven or undone.
	FinalizerRecord = Domain + "record"
	// FinalizerStorage keeps a PV until its volume has been deleted from the storage.
	FinalizerStorage = Domain + "storage"
)

// ParamConfigNamespace is the StorageClass parameter that names the config's namespace where it is not
// the dispatcher's own. It is not passed on as a property.
const ParamConfigNamespace = Domain + "config-namespace"

// Container is the name of the container whose exit code is the verdict.
const Container = "provisioner"

// Files of a run.
const (
	Dir         = "/etc/flex"
	RequestFile = Dir + "/request.json"
	PVFile      = Dir + "/pv.json"
	SecretDir   = Dir + "/secret"
	// TerminationLog takes the lines for the claim's user, the results of a batch or of an expand, or the volume source with write-pv: dispatcher.
	TerminationLog = "/dev/termination-log"
)

// AnnRescheduled is the annotation of a provision Job by which this claim, as it was at the resourceVersion that it
// holds, is given back to the scheduler. One claim's own, since a Job may serve several.
func AnnRescheduled(uid string) string { return Domain + "rescheduled-" + uid }

// PVName is the name of the PV of the claim with this UID.
func PVName(uid string) string { return "pvc-" + uid }
