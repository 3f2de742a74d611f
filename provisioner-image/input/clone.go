package input

import (
	"errors"
	"fmt"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// checkClone refuses a clone that the class does not make. A claim that asks for a clone never gets an empty volume
// instead.
func checkClone(r contract.Request, c class) error {
	smart, err := parseBool("smartclone", c.smartClone)
	if err != nil {
		return fault(contract.ExitConfig, err)
	}
	if r.Source == nil && r.Annotations[contract.AnnCloneRequest] == "" {
		return nil
	}
	return fault(contract.ExitBadRequest, whyNotCloned(r, c, smart))
}

func whyNotCloned(r contract.Request, c class, smart bool) error {
	switch {
	case !smart:
		return fmt.Errorf("storage class %q makes no clones: its parameter smartclone is not true", r.Class)
	case r.Source == nil:
		return fmt.Errorf("the clone of %q cannot be made: it is no bound claim, or not one that this claim may copy",
			r.Annotations[contract.AnnCloneRequest])
	case r.Source.Kind != contract.SourceClaim:
		return fmt.Errorf("a volume cannot be copied from a %s, only from a %s", r.Source.Kind, contract.SourceClaim)
	case c.snapshot != "":
		return fmt.Errorf("storage class %q fills every volume from its own snapshot: clone with another class", r.Class)
	case r.Source.PVName == "":
		return errors.New("the source claim is not bound")
	default:
		return nil
	}
}
