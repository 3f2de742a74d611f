package runs

import (
	"strconv"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Reached is the size that a volume has after a run of expand: what its container reports, else what it
// was asked for. It is nil while the run has not ended well, and on any other verb.
func (r Record) Reached(o Outcome) *resource.Quantity {
	if r.Verb != contract.Expand || o.Verdict != contract.Done {
		return nil
	}
	if o.Capacity != nil {
		return o.Capacity
	}
	return r.Size()
}

// Size is what a run of expand was asked for, or nil.
func (r Record) Size() *resource.Quantity {
	size, err := strconv.ParseInt(r.Hash, 10, 64)
	if r.Verb != contract.Expand || err != nil {
		return nil
	}
	return resource.NewQuantity(size, resource.BinarySI)
}

// Short tells whether a run of expand that ended well made the volume smaller than it was asked for.
func (r Record) Short(o Outcome) bool {
	reached, asked := r.Reached(o), r.Size()
	return reached != nil && asked != nil && reached.Cmp(*asked) < 0
}

// reported is the capacity that a container reports for a volume, or nil.
func reported(message, uid string) *resource.Quantity {
	var last *resource.Quantity
	for _, r := range resultsIn(message) {
		if size := capacityOf(r); r.UID == uid && size != nil {
			last = size
		}
	}
	return last
}
