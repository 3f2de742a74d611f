package contract

// AnnCloneRequest is the claim's annotation "namespace/name" that asks for a copy of another claim's
// volume, beside the claim's own dataSource.
const AnnCloneRequest = "k8s.io/CloneRequest"

// AnnCloneOf is, on a PV, "namespace/name" of the claim whose volume the image has copied; the dispatcher
// shows it on the claim as AnnClaimCloneOf.
const (
	AnnCloneOf      = Domain + "clone-of"
	AnnClaimCloneOf = "k8s.io/CloneOf"
)

// SourceClaim is the Kind of a Source that is a claim.
const SourceClaim = "PersistentVolumeClaim"

// Source is what a claim's volume is to be copied from. The dispatcher has resolved it: it saw the
// source claim bound to the PV, and consent where the two live in different namespaces. The image reads
// the PV, whose annotations no user can write, and trusts nothing that the claims say.
type Source struct {
	// Kind is PersistentVolumeClaim.
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// UID of the source claim, as the PV's claimRef must have it: another claim may get the same name.
	UID string `json:"uid"`
	// PVName is the PV that the source claim is bound to.
	PVName string `json:"pvName"`
}
