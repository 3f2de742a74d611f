package remote

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/test/recipes/kube"
)

func TestEachVerbCanBeRepeated(t *testing.T) {
	forEach(t, func(of subtest) {
		t, r := of.t, of.recipe
		w := newWorld(t, r)
		c := claim(1)
		w.mustEnd(w.run(contract.Delete, c), 0, "") // of what never was
		for range 2 {
			w.mustEnd(w.run(contract.Provision, c), 0, "")
			w.mustHave(mebi, c)
		}
		w.mustHavePV(c)
		c.Size = 6 * mebi
		for range 2 {
			w.mustEnd(w.run(contract.Expand, c), 0, "")
			w.mustHave(6*mebi, c)
		}
		c.Size = mebi
		size := fmt.Sprintf("%q:%d}", "capacity", w.recipe.volumes(w)[c.UID])
		w.mustEnd(w.run(contract.Expand, c), 0, size) // never shrinks, and a quota counts what it has
		w.mustHave(6*mebi, c)
		for range 2 {
			w.mustEnd(w.run(contract.Delete, c), 0, "")
			w.mustHaveNothing()
		}
		w.mustEnd(w.run("resize", c), contract.ExitUsage, `unknown verb "resize"`)
	})
}

// mustHavePV checks the PV of the first claim, and the Secret that it names.
func (w *world) mustHavePV(c contract.Request) {
	w.t.Helper()
	pvs := w.api.All("persistentvolumes")
	if len(pvs) != 1 || pvs[0].At("metadata", "name") != c.PVName || pvs[0].At("metadata", "annotations", contract.AnnClaimUID) != c.UID {
		w.t.Fatalf("the PVs are %v", pvs)
	}
	spec, _ := pvs[0].At("spec").(map[string]any)
	source := map[string]any{}
	for _, kind := range []string{"nfs", "iscsi", "csi"} {
		if spec[kind] != nil {
			source[kind] = spec[kind]
		}
	}
	text, err := json.Marshal(source)
	must(w.t, err)
	want := strings.NewReplacer("WORLD", w.dir, "POOL", w.properties["pool"]).Replace(w.recipe.source)
	if w.appliance != nil {
		want = strings.ReplaceAll(want, "VOLUME", string(w.appliance.volumes[0].ID))
	}
	if string(text) != want {
		w.t.Errorf("the volume source is\n%s, want\n%s", text, want)
	}
	secrets := w.api.All("secrets")
	if spec["iscsi"] == nil {
		if len(secrets) > 0 {
			w.t.Errorf("there are Secrets: %v", secrets)
		}
		return
	}
	if len(secrets) != 1 || secrets[0].At("metadata", "name") != c.PVName || secrets[0].At("type") != "kubernetes.io/iscsi-chap" ||
		len(kube.Password(w.t, secrets[0])) != 32 || pvs[0].At("metadata", "annotations", "flex-provisioner.io/secret") != "flex-provisioner/"+c.PVName {
		w.t.Errorf("the Secrets are %v, the PV %v", secrets, pvs[0])
	}
	labels := fmt.Sprint(secrets[0].At("metadata", "labels"))
	if labels != fmt.Sprintf("map[flex-provisioner.io/claim-uid:%s storage-class:gold]", c.UID) {
		w.t.Errorf("the labels of the Secret are %s", labels)
	}
}
