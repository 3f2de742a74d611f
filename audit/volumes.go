package audit

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

// list is what the storage of a class has listed, or, if that is on nodes, what one of them has.
type list struct {
	class, node string
	volumes     []Volume
}

// lists returns what was listed, by class and node. Volumes of other clusters are theirs.
func (x *index) lists() []list {
	var out []list
	for class, volumes := range x.Volumes {
		out = append(out, list{class: class, volumes: volumes})
	}
	for class, nodes := range x.OnNodes {
		for node, volumes := range nodes {
			out = append(out, list{class, node, volumes})
		}
	}
	for i := range out {
		out[i].volumes = slices.DeleteFunc(slices.Clone(out[i].volumes), x.isForeign)
	}
	slices.SortFunc(out, func(a, b list) int {
		return cmp.Or(cmp.Compare(a.class, b.class), cmp.Compare(a.node, b.node))
	})
	return out
}

// volumes compares what the storages list with the PVs. Classes may share a storage, so a volume is
// reported once: as the class that it names has listed it or, if that has not, as another has.
func (x *index) volumes() []Finding {
	lists := x.lists()
	out := x.volumesMissing(lists)
	var own, others []Finding
	for _, l := range lists {
		count := map[string]int{}
		for _, v := range l.volumes {
			count[v.UID]++
		}
		for _, v := range l.volumes {
			switch found := x.volume(l, v, count[v.UID]); {
			case found == nil:
			case v.Class == l.class:
				own = append(own, *found)
			default:
				others = append(others, *found)
			}
		}
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
// So its name is quoted wherever it is printed. Nodes have volumes of their own: that of a claim's PV
// is on the node of the PV, and another one, on another node, is a second.
func (x *index) volume(l list, v Volume, ofClaim int) *Finding {
	found := Finding{
		Kind: VolumeLeft, UID: v.UID, Age: x.ageOf(v), Size: v.Size, Class: cmp.Or(v.Class, l.class), ListedBy: l.class, Node: l.node, Volume: v,
		Why: "there is no PersistentVolume of it, and no claim or run that would write one",
	}
	found.Object = "volume " + quote.Name(v.Volume) + found.At()
	found.Fix = "delete the volume " + quote.Name(v.Volume) + " in the storage" + found.At() + ", if it is neither in use nor another cluster's"
	pv := x.ofUID[v.UID]
	switch {
	case ofClaim > 1:
		found.Kind, found.Why = VolumeTwice, fmt.Sprintf("%d volumes of the class %s are of its claim", ofClaim, l.class)
	case pv != nil && !x.isOn(pv, l.node):
		found.Kind, found.Why = VolumeTwice, "the PersistentVolume "+pv.Name+" of its claim has its volume on another node"
	case pv != nil || x.isKept(v):
		return nil
	case x.Bears(v) && v.Class == l.class && isArgument(v.Volume) && HasUID(v):
		found.Fix = quote.Command("kubectl", "flex", "audit", "--storage="+l.class, "--fix="+v.Volume) + "  # unless it is kept on purpose"
	}
	return &found
}

// isKept reports whether a volume without a PV of its own stands for something: its claim or a run
// waits for it, or an administrator keeps it by a PV.
func (x *index) isKept(v Volume) bool { return x.isWaitedFor(v.UID) || x.holders.mayStandFor(v) }

// uidForm is the form of the UIDs that the API server gives.
var uidForm = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// HasUID reports whether what a storage takes for the UID of a volume's claim can be one. No volume
// is deleted by another text, which would be in names and selectors of Jobs.
func HasUID(v Volume) bool { return uidForm.MatchString(v.UID) }

// isArgument reports whether --fix takes a volume's name for that of one volume. A comma separates
// two, "*" stands for all, and a value in quotes is read as a field of CSV.
func isArgument(volume string) bool { return volume != "*" && !strings.ContainsAny(volume, ",\"\r\n") }

// listedOn returns on which nodes a volume of a claim was listed, by class and UID. A storage that is
// not on nodes has one without a name.
func (x *index) listedOn(lists []list) map[string]map[string][]string {
	out := map[string]map[string][]string{}
	for class := range x.OnNodes {
		out[class] = map[string][]string{}
	}
	for _, l := range lists {
		if out[l.class] == nil {
			out[l.class] = map[string][]string{}
		}
		for _, v := range l.volumes {
			out[l.class][v.UID] = append(out[l.class][v.UID], l.node)
		}
	}
	return out
}

// volumesMissing returns the PVs whose volume is not listed where it must be. A PV on nodes that
// were not all listed is none of them.
func (x *index) volumesMissing(lists []list) []Finding {
	listed := x.listedOn(lists)
	var out []Finding
	for _, pv := range x.PVs {
		uid, of := pv.Annotations[contract.AnnClaimUID], listed[pv.Spec.StorageClassName]
		isThere := slices.ContainsFunc(of[uid], func(node string) bool { return x.isOn(pv, node) })
		if of != nil && uid != "" && !isThere && pv.DeletionTimestamp == nil && x.wasLookedFor(pv) {
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
	before.Volumes, before.OnNodes, before.Nodes = after.Volumes, after.OnNodes, after.Nodes
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
