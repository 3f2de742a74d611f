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
	// LabelClaimUID holds the UID of the claim after which a Job is named, on the Job and on its pods.
	LabelClaimUID = Domain + "claim-uid"
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

// PVName is the name of the PV of the claim with this UID.
func PVName(uid string) string { return "pvc-" + uid }
