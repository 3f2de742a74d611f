package audit

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// Usage is how full the volume of a PV is.
type Usage struct {
	Class string `json:"class"`
	// PV is the name of its PersistentVolume.
	PV string `json:"persistentVolume"`
	// Namespace and Claim are those of the claim that is bound to the PV, empty if none is.
	Namespace string `json:"namespace,omitempty"`
	Claim     string `json:"claim,omitempty"`
	// Size is the PV's capacity, and Used what the storage says of the volume, both in bytes.
	Size int64 `json:"size"`
	Used int64 `json:"used"`
}

// Usages returns how full the volumes of PVs are, the fullest first, as far as their storages tell
// it. A list may name any claim. So a volume counts only by the list of its PV's class, on nodes by
// that of its PV's node. It does not count if the list has several volumes of the claim.
func Usages(s State) []Usage {
	x := newIndex(s)
	var out []Usage
	for _, l := range x.lists() {
		ofUID := map[string][]Volume{}
		for _, v := range l.volumes {
			ofUID[v.UID] = append(ofUID[v.UID], v)
		}
		for uid, volumes := range ofUID {
			pv := x.ofUID[uid]
			isItsList := pv != nil && pv.Spec.StorageClassName == l.class && x.isOn(pv, l.node)
			if isItsList && len(volumes) == 1 && volumes[0].Used.Known {
				out = append(out, x.usage(pv, volumes[0]))
			}
		}
	}
	slices.SortFunc(out, func(a, b Usage) int { return cmp.Or(cmp.Compare(b.Share(), a.Share()), cmp.Compare(a.PV, b.PV)) })
	return out
}

func (x *index) usage(pv *corev1.PersistentVolume, v Volume) Usage {
	out := Usage{Class: pv.Spec.StorageClassName, PV: pv.Name, Size: pv.Spec.Capacity.Storage().Value(), Used: v.Used.Bytes}
	if x.isBound(pv) {
		claim := x.claims[string(pv.Spec.ClaimRef.UID)]
		out.Namespace, out.Claim = claim.Namespace, claim.Name
	}
	return out
}

// Share is how much of a volume is used: 1 is all of it.
func (u Usage) Share() float64 { return float64(u.Used) / float64(max(u.Size, 1)) }
