package contract

// AnnCloneRequest is the annotation of a claim, "namespace/name", that asks for a clone of another
// claim's volume, beside the claim's own dataSource.
const AnnCloneRequest = "k8s.io/CloneRequest"

// AnnCloneOf is the annotation of a PV, "namespace/name", that names the claim whose volume the
// image has cloned. The dispatcher publishes it on the claim as AnnClaimCloneOf.
const (
	AnnCloneOf      = Domain + "clone-of"
	AnnClaimCloneOf = "k8s.io/CloneOf"
)

// SourceClaim is the Kind of a Source that is a claim.
const SourceClaim = "PersistentVolumeClaim"

// Source is what a claim's volume is to be cloned from. The dispatcher has resolved it: it saw that
// the source claim is bound to the PV, and that the source's namespace consents if it is another
// one. The image reads the PV, whose annotations no user can write, and trusts nothing that the
// claims say.
type Source struct {
	// Kind is PersistentVolumeClaim.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// UID of the source claim. The PV's claimRef must have it, since another claim may get the same
	// name.
	UID string `json:"uid"`
	// PVName is the PV that the source claim is bound to.
	PVName string `json:"pvName"`
}
