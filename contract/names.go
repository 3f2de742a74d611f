package contract

// Version is the version of the contract that a Job was built under. Every request file carries it.
const Version = "flex-provisioner.io/v1"

// Domain is the prefix of every label, annotation and finalizer of this project.
const Domain = ProvisionerName + "/"

// Names of provisioners.
const (
	// ProvisionerName is the provisioner that a StorageClass names, unless the dispatcher runs with
	// another --provisioner-name. It has no slash, so that a CSIDriver can have the same name.
	ProvisionerName = "flex-provisioner.io"
	// OldPluginName is accepted as a config's plugin-name, because the original design used it. It
	// can never be a StorageClass's provisioner: the PV controller treats every kubernetes.io/ name
	// as an in-tree plugin and fails the claim.
	OldPluginName = "kubernetes.io/flex-provisioner"
)

// Labels of a provisioner ConfigMap.
const (
	LabelType         = "type"
	TypeConfig        = "provisioner-config"
	LabelStorageClass = "storage-class"
)

// Labels of the objects that the dispatcher creates or requires.
const (
	// LabelClaimUID holds the UID of the claim after which a Job is named, on the Job and on its
	// pods.
	LabelClaimUID = Domain + "claim-uid"
	// LabelProvisioner must be "true" on a ServiceAccount before a config may name it.
	LabelProvisioner = Domain + "provisioner"
)

// Annotations of a PersistentVolume.
const (
	// AnnClaimUID is the claim's UID. A PV that is named after the claim and carries it proves that
	// the provision succeeded.
	AnnClaimUID = Domain + "claim-uid"
	// AnnRevision is "namespace/name" of the ControllerRevision under which the volume was made.
	// Delete and expand run under it, too.
	AnnRevision = Domain + "config-revision"
	// AnnProvisionedBy is Kubernetes' own. Without it the PV controller would mark the PV Failed
	// instead of Released when its claim is deleted.
	AnnProvisionedBy = "pv.kubernetes.io/provisioned-by"
	// AnnSecret is "namespace/name" of the Secret that nodes need for the PV's volume, if there is
	// one. An image writes it with the Secret; its label LabelClaimUID is the claim's UID.
	// flex-dispatcher audit finds Secrets that are left by both.
	AnnSecret = Domain + "secret"
	// AnnFileSystem is the size of the file system on a volume. An administrator writes it after
	// expanding the file system by hand, where the kubelet does not.
	AnnFileSystem = Domain + "file-system-size"
)

// Annotations of a claim. They are output: the dispatcher takes no decision from them, since users
// can edit them.
const (
	AnnProvisionTS = Domain + "provision-ts" // when the newest run ended, on a PV when the run that wrote it was launched, RFC 3339
	AnnAttempts    = Domain + "attempts"
	AnnResult      = Domain + "result" // "succeeded" or "failed"
	AnnExitCode    = Domain + "exit-code"
	AnnMessage     = Domain + "message"
	// AnnResizer is Kubernetes' own: the controller that expands the claim's volume.
	AnnResizer = "volume.kubernetes.io/storage-resizer"
)

// Finalizers.
const (
	// FinalizerStorage keeps a PV until its volume has been deleted from the storage.
	FinalizerStorage = Domain + "storage"
)

// ParamConfigNamespace is the StorageClass parameter that names the namespace of the config if that
// is not the dispatcher's --namespace. It is not passed on as a property.
const ParamConfigNamespace = Domain + "config-namespace"

// ParamConfig is the StorageClass parameter that names the class's ConfigMap, in that namespace. The
// ConfigMap's key "classes" must list the class. Without it the ConfigMap is found by its label. It
// is not passed on as a property.
const ParamConfig = Domain + "config"

// Container is the name of the container whose exit code is the verdict.
const Container = "provisioner"

// Files of a run.
const (
	Dir         = "/etc/flex"
	RequestFile = Dir + "/request.json"
	PVFile      = Dir + "/pv.json"
	// ScriptFile is the program of a config with the key script.
	ScriptFile = Dir + "/script"
	SecretDir  = Dir + "/secret"
	// TerminationLog receives the lines for the claim's user, the results of a batch or of an
	// expand, and, with write-pv: dispatcher, the volume source.
	TerminationLog = "/dev/termination-log"
)

// PVName returns the name of the PV of the claim with this UID.
func PVName(uid string) string { return "pvc-" + uid }

// longestLabel is the length up to which Kubernetes accepts the value of a label.
const longestLabel = 63

// SecretLabels returns the labels of a volume's Secret. By the class an admission policy lets the
// pod of a batch delete it, which is named after another claim. A name that is too long for a label
// would be refused.
func SecretLabels(uid, class string) map[string]string {
	all := map[string]string{LabelClaimUID: uid}
	if len(class) <= longestLabel {
		all[LabelStorageClass] = class
	}
	return all
}
