package runs

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Reached returns the size that a volume has after an expand: what its container reports, or else
// what it was asked for. It returns nil if the run did not succeed, and for any other verb.
func (r Record) Reached(o Outcome) *resource.Quantity {
	if r.Verb != contract.Expand || o.Verdict != contract.Done {
		return nil
	}
	if o.Capacity != nil {
		return o.Capacity
	}
	return r.Size()
}

// Size returns what an expand was asked for, or nil.
func (r Record) Size() *resource.Quantity {
	size, err := strconv.ParseInt(r.Hash, 10, 64)
	if r.Verb != contract.Expand || err != nil {
		return nil
	}
	return resource.NewQuantity(size, resource.BinarySI)
}

// Short reports whether an expand that succeeded made the volume smaller than it was asked for.
func (r Record) Short(o Outcome) bool {
	reached, asked := r.Reached(o), r.Size()
	return reached != nil && asked != nil && reached.Cmp(*asked) < 0
}

// reportedCapacity returns the capacity that a container reports for a volume, or nil.
func reportedCapacity(message, uid string) *resource.Quantity {
	var last *resource.Quantity
	for _, r := range resultsIn(message) {
		if size := capacityOf(r); r.UID == uid && size != nil {
			last = size
		}
	}
	return last
}
