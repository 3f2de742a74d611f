package audit

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

// volumes compares what the storages list with the PVs. Volumes of other clusters are theirs.
// Classes may share a storage, so a volume is reported once: as the class that it names has listed
// it or, if that has not, as another has.
func (x *index) volumes() []Finding {
	var out, own, others []Finding
	for _, class := range slices.Sorted(maps.Keys(x.Volumes)) {
		listed := slices.DeleteFunc(slices.Clone(x.Volumes[class]), x.isForeign)
		count := map[string]int{}
		for _, v := range listed {
			count[v.UID]++
		}
		for _, v := range listed {
			switch found := x.volume(class, v, count[v.UID]); {
			case found == nil:
			case v.Class == class:
				own = append(own, *found)
			default:
				others = append(others, *found)
			}
		}
		out = append(out, x.volumesMissing(class, count)...)
	}
	reported := map[identity]bool{}
	for _, f := range slices.Concat(own, others) {
		if key := (identity{class: f.Class, uid: f.UID, object: f.Object}); !reported[key] {
			reported[key] = true
			out = append(out, f)
		}
	}
	return out
}

// identity distinguishes findings. Another storage may have a volume of the same name.
type identity struct {
	kind               Kind
	class, uid, object string
}

// volume judges one of some volumes of a claim that a class lists. A storage may name a volume as
// it likes, and an odd name refuses no list: then one volume would hide the findings of all others.
// So its name is quoted wherever it is printed.
func (x *index) volume(class string, v Volume, ofClaim int) *Finding {
	found := Finding{
		Kind: VolumeLeft, UID: v.UID, Object: "volume " + quote.Name(v.Volume), Age: x.ageOf(v), Size: v.Size, Class: cmp.Or(v.Class, class), ListedBy: class, Volume: v,
		Why: "there is no PersistentVolume of it, and no claim or run that would write one",
		Fix: "delete the volume " + quote.Name(v.Volume) + " in the storage, if it is neither in use nor another cluster's",
	}
	switch {
	case ofClaim > 1:
		found.Kind, found.Why = VolumeTwice, fmt.Sprintf("%d volumes of the class %s are of its claim", ofClaim, class)
	case x.ofUID[v.UID] != nil || x.isWaitedFor(v.UID) || x.holders.mayStandFor(v): // an administrator keeps it by that PV
		return nil
	case x.Bears(v) && v.Class == class && isArgument(v.Volume) && HasUID(v):
		found.Fix = quote.Command("kubectl", "flex", "audit", "--storage="+class, "--fix="+v.Volume) + "  # unless it is kept on purpose"
	}
	return &found
}

// uidForm is the form of the UIDs that the API server gives.
var uidForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// HasUID reports whether what a storage takes for the UID of a volume's claim can be one. No volume
// is deleted by another text, which would be in names and selectors of Jobs.
func HasUID(v Volume) bool { return uidForm.MatchString(v.UID) }

// isArgument reports whether --fix takes a volume's name for that of one volume. A comma separates
// two, "*" stands for all, and a value in quotes is read as a field of CSV.
func isArgument(volume string) bool { return volume != "*" && !strings.ContainsAny(volume, ",\"\r\n") }

func (x *index) volumesMissing(class string, count map[string]int) []Finding {
	var out []Finding
	for _, pv := range x.PVs {
		uid := pv.Annotations[contract.AnnClaimUID]
		if pv.Spec.StorageClassName == class && uid != "" && count[uid] == 0 && pv.DeletionTimestamp == nil {
			out = append(out, x.ofPV(VolumeMissing, pv, x.age(pv.CreationTimestamp), "the storage lists no volume of it",
				quote.Command("kubectl", "describe", "persistentvolume", pv.Name)+"  # and look for its volume in the storage"))
		}
	}
	return out
}

// CheckAround returns what is wrong, where the storages were listed between two states, the first
// of them without volumes: a volume is a finding only if it is one by both. Between them one may
// have been made or deleted.
func CheckAround(before, after State) []Finding {
	before.Volumes = after.Volumes
	found, known := Check(after), identities(Check(before))
	return slices.DeleteFunc(found, func(f Finding) bool { return f.isOfStorage() && !known[f.identity()] })
}

// New returns the findings that were not there before.
func New(found, before []Finding) []Finding {
	known := identities(before)
	return slices.DeleteFunc(slices.Clone(found), func(f Finding) bool { return known[f.identity()] })
}

func identities(all []Finding) map[identity]bool {
	out := map[identity]bool{}
	for _, f := range all {
		out[f.identity()] = true
	}
	return out
}

func (f Finding) identity() identity { return identity{f.Kind, f.Class, f.UID, f.Object} }

// isOfStorage reports whether a finding is by what a storage lists.
func (f Finding) isOfStorage() bool {
	return f.Kind == VolumeLeft || f.Kind == VolumeTwice || f.Kind == VolumeMissing
}
