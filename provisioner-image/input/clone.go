package input

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// checkClone refuses a clone that the class does not make. A claim that asks for a clone never gets
// an empty volume instead.
func checkClone(r contract.Request, c class, adopt string) error {
	if r.Source == nil && r.Annotations[contract.AnnCloneRequest] == "" {
		return nil
	}
	return fault(contract.ExitBadRequest, whyNotCloned(r, c, adopt))
}

// clones reports whether the class makes clones: it does if it has the parameter smartclone at all,
// unless that says no.
func (c class) clones() bool {
	return !slices.Contains([]string{"false", "f", "0", "no", "n", "off"}, strings.ToLower(c.smartClone))
}

func whyNotCloned(r contract.Request, c class, adopt string) error {
	switch {
	case !c.clones():
		return fmt.Errorf("storage class %q does not allow clones: the key smartclone of its config, or its parameter, is missing or false."+
			" Remedy: ask an administrator to add smartclone: \"true\" and data-sources: %s to the data of its ConfigMap", r.Class, contract.SourceClaim)
	case r.Source == nil:
		return fmt.Errorf("claim %q cannot be cloned: it does not exist, is not bound, or may not be cloned by this claim",
			r.Annotations[contract.AnnCloneRequest])
	case r.Source.Kind != contract.SourceClaim:
		return fmt.Errorf("a %s cannot be cloned, only a %s can", r.Source.Kind, contract.SourceClaim)
	case c.snapshot != "":
		return fmt.Errorf("storage class %q creates every volume from its own snapshot: use another class for a clone", r.Class)
	case adopt != "":
		return fmt.Errorf("the config's key adopt assigns volume %s to the claim, which requests a clone, too. Remedy: create the claim without a source,"+
			" or ask an administrator to remove the line from the config", adopt)
	case r.Source.PVName == "":
		return errors.New("the source claim is not bound")
	default:
		return nil
	}
}
