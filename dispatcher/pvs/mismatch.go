package pvs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

// Mismatch returns why Kubernetes will never bind a claim, which is unbound, to the PV that was
// written for it, or nothing if it may. A larger volume is not a mismatch. Another class is not
// either: Kubernetes binds a PV to the claim that it names whatever its class.
func Mismatch(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) string {
	var wrong []string
	add := func(is bool, format string, args ...any) {
		if is {
			wrong = append(wrong, fmt.Sprintf(format, args...))
		}
	}
	add(pv.DeletionTimestamp != nil, "is being deleted")
	ref := pv.Spec.ClaimRef
	add(ref == nil, "has no claimRef, so Kubernetes may bind any claim to it")
	add(ref != nil && !storagehelpers.IsVolumeBoundToClaim(pv, claim), "has a claimRef to another claim, %s", nameOf(ref))
	has, asked := pv.Spec.Capacity.Storage(), claim.Spec.Resources.Requests.Storage()
	add(has.Cmp(*asked) < 0, "has the capacity %s, and the claim requests %s", has, asked)
	add(storagehelpers.CheckVolumeModeMismatches(&claim.Spec, &pv.Spec), "has the volumeMode %s, and the claim requests %s",
		ptr.Deref(pv.Spec.VolumeMode, corev1.PersistentVolumeFilesystem), ptr.Deref(claim.Spec.VolumeMode, corev1.PersistentVolumeFilesystem))
	for _, mode := range claim.Spec.AccessModes {
		add(!slices.Contains(pv.Spec.AccessModes, mode), "lacks the access mode %s", mode)
	}
	is, want := ptr.Deref(pv.Spec.VolumeAttributesClassName, ""), ptr.Deref(claim.Spec.VolumeAttributesClassName, "")
	add(is != want, "has the volumeAttributesClassName %q, and the claim requests %q", is, want)
	if len(wrong) == 0 {
		return ""
	}
	return "the PersistentVolume " + pv.Name + " " + strings.Join(wrong, ", and ")
}

// Differs returns in which way a PV that its claim can use is not what was asked for, or nothing.
func Differs(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) string {
	asked := storagehelpers.GetPersistentVolumeClaimClass(claim)
	if pv.Spec.StorageClassName == asked {
		return ""
	}
	return fmt.Sprintf("the PersistentVolume %s has the class %q, and the claim requests %q. Kubernetes binds the claim to it, "+
		"but selectors and quotas by class do not match it", pv.Name, pv.Spec.StorageClassName, asked)
}

// OtherRevision returns that a PV names none of the config revisions under which its claim was
// served, and how to correct it, or nothing, also if these are not known. A PV that names none at
// all has the run's.
func OtherRevision(pv *corev1.PersistentVolume, served []string) string {
	named := pv.Annotations[contract.AnnRevision]
	if named == "" || len(served) == 0 || slices.Contains(served, named) {
		return ""
	}
	return fmt.Sprintf("the PersistentVolume %s names the config revision %s, but its claim was provisioned under %s "+
		"(if the volume belongs to the claim, correct this by kubectl annotate --overwrite pv %s %s=%s). "+
		"The PersistentVolume may be forged with a stolen token of a provisioner",
		pv.Name, strconv.Quote(named), strings.Join(served, " and "), pv.Name, contract.AnnRevision, served[len(served)-1])
}

// IsUnbound reports whether the phase of a PV says that no claim is or was bound to it.
func IsUnbound(pv *corev1.PersistentVolume) bool {
	return pv.Status.Phase == "" || pv.Status.Phase == corev1.VolumePending || pv.Status.Phase == corev1.VolumeAvailable
}

// NoClaim is the UID of no claim. The claimRef of a PV has it from the moment at which the PV is taken
// from the claim that was never bound to it.
const NoClaim = types.UID("00000000-0000-0000-0000-000000000000")

// IsTakenFromClaim reports whether a PV was taken from its claim.
func IsTakenFromClaim(pv *corev1.PersistentVolume) bool {
	return pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID == NoClaim
}

// NeverBound reports whether no claim can ever have been bound to an unbound PV, so that it holds
// no data. That needs proof: the claim of its UID still exists and is not bound, and the claimRef
// still names it, or was taken from it. An administrator passes on a released PV by a claimRef without a
// UID, or without any.
func NeverBound(pv *corev1.PersistentVolume, claim *corev1.PersistentVolumeClaim) bool {
	return claim != nil && claim.Spec.VolumeName == "" &&
		(IsTakenFromClaim(pv) || IsUnbound(pv) && pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.UID != "" && storagehelpers.IsVolumeBoundToClaim(pv, claim))
}

// Unclaimed returns why the owner of a PV without a live claim cannot be determined, or "" if the
// claimRef identifies it. Its volume may have data for a claim that does not exist yet: an
// administrator hands it over, or restores a backup.
func Unclaimed(pv *corev1.PersistentVolume) string {
	switch ref := pv.Spec.ClaimRef; {
	case ref == nil:
		return fmt.Sprintf("the PersistentVolume %s has no claimRef, and Kubernetes may bind any claim to it", pv.Name)
	case ref.UID == "":
		return fmt.Sprintf("the claimRef of the PersistentVolume %s has no UID, and matches any claim %s", pv.Name, nameOf(ref))
	default:
		return ""
	}
}

// WhyRival returns why a PV under another name than its UID's may be the volume of that UID, or
// nothing. Such a PV carries the UID, or it has the volume source of own, the UID's PV, which may
// be nil. Or it names the claim, and was created since a run was launched that may have made the
// volume. The clocks of two API servers may differ by a minute.
func WhyRival(pv, own *corev1.PersistentVolume, uid string, since time.Time) string {
	ref := pv.Spec.ClaimRef
	names := ref != nil && string(ref.UID) == uid
	switch {
	case pv.Name == contract.PVName(uid):
		return ""
	case pv.Annotations[contract.AnnClaimUID] == uid, names && !since.IsZero() && !pv.CreationTimestamp.Time.Before(since.Add(-time.Minute)):
		return fmt.Sprintf("the PersistentVolume %s was created for the claim under a wrong name; the right name is %s", pv.Name, contract.PVName(uid))
	case own != nil && hasSameSource(pv, own) && !isLeaving(pv):
		return fmt.Sprintf("the PersistentVolume %s has the same volume source as the claim's own, %s", pv.Name, own.Name)
	default:
		return ""
	}
}

// hasSameSource reports whether two PVs stand for the same volume, by their volume sources. A path
// of a node is another volume on another node.
func hasSameSource(a, b *corev1.PersistentVolume) bool {
	if ofNode := a.Spec.HostPath != nil || a.Spec.Local != nil; ofNode && NodesOf(a) != nil && NodesOf(b) != nil && !equality.Semantic.DeepEqual(NodesOf(a), NodesOf(b)) {
		return false
	}
	return SourceKey(a) != "" && equality.Semantic.DeepEqual(a.Spec.PersistentVolumeSource, b.Spec.PersistentVolumeSource)
}

// isLeaving reports whether a PV is deleted that no claim holds any more. A storage may hand out a
// device again as soon as its volume has been deleted, and the PV goes a moment later.
func isLeaving(pv *corev1.PersistentVolume) bool {
	return pv.DeletionTimestamp != nil && (IsReleased(pv) || IsUnbound(pv))
}

// SourceKey returns a hash of a PV's volume source, empty if it has none.
func SourceKey(pv *corev1.PersistentVolume) string {
	if equality.Semantic.DeepEqual(pv.Spec.PersistentVolumeSource, corev1.PersistentVolumeSource{}) {
		return ""
	}
	text, err := json.Marshal(pv.Spec.PersistentVolumeSource)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

func nameOf(ref *corev1.ObjectReference) string {
	if ref == nil {
		return ""
	}
	name := quote.Name(ref.Namespace + "/" + ref.Name)
	if ref.UID == "" {
		return name
	}
	return fmt.Sprintf("%s with the UID %s", name, quote.Name(string(ref.UID)))
}

// IsReleased reports whether the phase of a PV says that its claim no longer exists.
func IsReleased(pv *corev1.PersistentVolume) bool {
	return pv.Status.Phase == corev1.VolumeReleased || pv.Status.Phase == corev1.VolumeFailed
}

// Owners returns the UID of the claim that a PV was written for and the UID of the claim that it
// names. Mostly they are the same.
func Owners(pv *corev1.PersistentVolume) []string {
	owners := []string{pv.Annotations[contract.AnnClaimUID]}
	if ref := pv.Spec.ClaimRef; ref != nil && string(ref.UID) != owners[0] {
		owners = append(owners, string(ref.UID))
	}
	return slices.DeleteFunc(owners, func(uid string) bool { return uid == "" })
}

// OfAnotherProvisioner reports whether the annotations of a PV say that it was made for another
// provisioner. A PV without the annotation might be this dispatcher's.
func OfAnotherProvisioner(annotations map[string]string, provisioner string) bool {
	by := annotations[contract.AnnProvisionedBy]
	return by != "" && by != provisioner
}
