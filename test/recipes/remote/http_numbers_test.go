//go:build recipes

package remote

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// A delete of a rounded ID would delete the volume of another claim: jq 1.6, which the image has,
// reads 9007199254740993 as 9007199254740992.
func TestAnApplianceMayNumberItsVolumes(t *testing.T) {
	t.Parallel()
	for _, last := range []int{1<<53 - 1, 999_999_999_999_999_998, 0} {
		w, other, c := newWorld(t, overHTTP()), claim(1), claim(2)
		w.appliance.form, w.appliance.made = "%d", last
		w.mustEnd(w.run(contract.Provision, other), 0, "")
		w.mustEnd(w.run(contract.Provision, c), 0, "")
		c.Size = 2 * mebi
		w.mustEnd(w.run(contract.Expand, c), 0, fmt.Sprintf("%q:%d}", "capacity", 2*mebi))
		if sizes := w.recipe.volumes(w); sizes[other.UID] != mebi || sizes[c.UID] != 2*mebi {
			t.Errorf("after %d: the sizes are %v", last, sizes)
		}
		for i, one := range []contract.Request{other, c} {
			id := fmt.Sprint(last + 1 + i)
			w.mustEnd(w.run(contract.List, one), 0, fmt.Sprintf(`"volume":%q`, id))
		}
		c.ListedVolume = fmt.Sprint(last + 1)
		w.mustEnd(w.run(contract.Delete, c), contract.ExitTempFail, "the listed volume is not the claim's")
		w.mustHave(mebi, other, c)
		c.ListedVolume = fmt.Sprint(last + 2)
		for range 2 {
			w.mustEnd(w.run(contract.Delete, c), 0, "")
			w.mustHave(mebi, other)
		}
		w.mustEnd(w.run(contract.Delete, other), 0, "")
		w.mustHaveNothing()
	}
}

// A storage that keeps sizes as numbers with a fraction once had its claim wait for ever.
func TestASizeMayHaveAFractionOfZeroOrAnExponent(t *testing.T) {
	t.Parallel()
	for one, two := range map[string]string{"1048576.0": "2097152.00", "1.048576e6": "2.097152e+06", "1048576": "2.097152E6"} {
		w, c := newWorld(t, overHTTP()), claim(1)
		w.appliance.writes = strings.NewReplacer(":1048576,", ":"+one+",", ":2097152,", ":"+two+",")
		w.mustEnd(w.run(contract.Provision, c), 0, "")
		w.mustHavePV(c)
		if has := w.api.All("persistentvolumes")[0].At("spec", "capacity", "storage"); has != "1048576" {
			t.Errorf("of %s the PV has the size %v", one, has)
		}
		w.mustEnd(w.run(contract.List, c), 0, `"size":1048576`)
		c.Size = 2 * mebi
		w.mustEnd(w.run(contract.Expand, c), 0, `"capacity":2097152`)
	}
}

func TestASizeThatWouldBeRoundedIsNotRead(t *testing.T) {
	t.Parallel()
	w, c := newWorld(t, overHTTP()), claim(1)
	w.mustEnd(w.run(contract.Provision, c), 0, "")
	w.api.Forget()
	for _, size := range []string{"1048576.5", "9007199254740993.0", "1e16", "-1048576", "01048576"} {
		w.appliance.writes = strings.NewReplacer(":1048576,", ":"+size+",")
		w.mustEnd(w.run(contract.Provision, c), contract.ExitTempFail, "a volume of the storage")
	}
}

func TestANumberWithAFractionOrAnExponentIsNeverAnotherVolume(t *testing.T) {
	t.Parallel()
	for _, id := range []applianceID{"7.0", "1e3", "9.007199254740993E15"} {
		w, c := newWorld(t, overHTTP()), claim(1)
		w.mustEnd(w.run(contract.Provision, c), 0, "")
		w.appliance.says = id
		w.mustEnd(w.run(contract.Delete, c), contract.ExitTempFail, "")
		for _, path := range w.appliance.deleted {
			if path != "/volumes/"+string(id) {
				t.Errorf("the ID %s: asked to delete %q", id, path)
			}
		}
	}
}
