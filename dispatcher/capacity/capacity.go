package capacity

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// open is the capacity of nodes that no run has found full: larger than any volume.
var open = resource.MustParse("4Ei")

// Class is a storage class that the dispatcher publishes capacity of.
type Class struct {
	Name, Provisioner string
	// Namespace is where the objects are, the dispatcher's --namespace.
	Namespace string
}

// Full is a node that had no room for a volume of a size, in bytes. Host is its hostname label.
type Full struct {
	Host  string
	Size  int64
	Until time.Time
}

// Wanted returns the objects of a class: one for every node that is open, and one for each full node, which still
// admits smaller volumes. The scheduler places no pod of a class without an object for the node.
func Wanted(class Class, full []Full, now time.Time) []*storagev1.CSIStorageCapacity {
	least := map[string]int64{}
	for _, f := range full {
		size, known := least[f.Host]
		if now.Before(f.Until) && (!known || f.Size < size) {
			least[f.Host] = f.Size
		}
	}
	hosts := slices.Sorted(maps.Keys(least))
	others := &metav1.LabelSelector{}
	if len(hosts) > 0 {
		others.MatchExpressions = onHosts(metav1.LabelSelectorOpNotIn, hosts...)
	}
	out := []*storagev1.CSIStorageCapacity{class.object(others, open, nil)}
	for _, host := range hosts {
		below := resource.NewQuantity(max(least[host]-1, 0), resource.BinarySI)
		out = append(out, class.object(&metav1.LabelSelector{MatchExpressions: onHosts(metav1.LabelSelectorOpIn, host)}, *below, below))
	}
	return out
}

func onHosts(op metav1.LabelSelectorOperator, hosts ...string) []metav1.LabelSelectorRequirement {
	return []metav1.LabelSelectorRequirement{{Key: corev1.LabelHostname, Operator: op, Values: hosts}}
}

// object returns an object of a class. Its name is a hash of the rest, most of which cannot be changed: another
// content is another object.
func (c Class) object(nodes *metav1.LabelSelector, capacity resource.Quantity, most *resource.Quantity) *storagev1.CSIStorageCapacity {
	out := &storagev1.CSIStorageCapacity{NodeTopology: nodes, StorageClassName: c.Name, Capacity: &capacity, MaximumVolumeSize: most}
	text, err := json.Marshal(out)
	if err != nil {
		panic(err) // it has nothing that cannot be encoded
	}
	sum := sha256.Sum256(text)
	out.ObjectMeta = metav1.ObjectMeta{
		Name: "flex-" + config.ClassLabel(c.Name) + "-" + hex.EncodeToString(sum[:8]), Namespace: c.Namespace,
		Labels:      map[string]string{config.LabelManagedBy: config.ManagedBy, config.LabelClass: config.ClassLabel(c.Name)},
		Annotations: map[string]string{contract.AnnProvisionedBy: c.Provisioner},
	}
	return out
}

// Compare returns which of the wanted objects do not exist, and which existing ones are not wanted.
func Compare(wanted, existing []*storagev1.CSIStorageCapacity) (missing, surplus []*storagev1.CSIStorageCapacity) {
	return without(wanted, existing), without(existing, wanted)
}

func without(these, those []*storagev1.CSIStorageCapacity) []*storagev1.CSIStorageCapacity {
	return slices.DeleteFunc(slices.Clone(these), func(a *storagev1.CSIStorageCapacity) bool {
		return slices.ContainsFunc(those, func(b *storagev1.CSIStorageCapacity) bool { return a.Name == b.Name })
	})
}

// Admits reports whether the scheduler, by these objects of a class, would place a volume of a size on a node.
func Admits(objects []*storagev1.CSIStorageCapacity, node labels.Set, size int64) bool {
	return slices.ContainsFunc(objects, func(o *storagev1.CSIStorageCapacity) bool {
		limit := o.MaximumVolumeSize
		if limit == nil {
			limit = o.Capacity
		}
		nodes, err := metav1.LabelSelectorAsSelector(o.NodeTopology)
		return err == nil && limit != nil && limit.Value() >= size && nodes.Matches(node)
	})
}

// Driver returns the CSIDriver of a provisioner. No CSI driver of this name runs anywhere: the scheduler finds by it
// that the classes of the provisioner publish capacity.
func Driver(provisioner string) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{
		ObjectMeta: metav1.ObjectMeta{Name: provisioner, Labels: map[string]string{config.LabelManagedBy: config.ManagedBy}},
		Spec:       storagev1.CSIDriverSpec{AttachRequired: new(false), PodInfoOnMount: new(false), StorageCapacity: new(true)},
	}
}

// IsOurs reports whether a CSIDriver is the dispatcher's, and not that of a real driver of the same name.
func IsOurs(driver *storagev1.CSIDriver) bool {
	return driver.Labels[config.LabelManagedBy] == config.ManagedBy
}

// IsPublishing reports whether the scheduler reads the capacity of a driver's classes.
func IsPublishing(driver *storagev1.CSIDriver) bool {
	return driver.Spec.StorageCapacity != nil && *driver.Spec.StorageCapacity
}
