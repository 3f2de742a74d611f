//go:build recipes

package remote

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

func TestClones(t *testing.T) {
	t.Parallel()
	for _, r := range []recipe{iscsiTarget(), overLVM()} {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, r)
			source, clone := claim(1), claim(2, cloneOf(1), func(c *contract.Request) { c.Size = 6 * mebi })
			w.mustEnd(w.run(contract.Provision, clone), contract.ExitBadRequest, "claim: the storage cannot clone this source") // there is none
			w.mustEnd(w.run(contract.Delete, clone), 0, "")
			w.mustHaveNothing()
			w.mustEnd(w.run(contract.Provision, source), 0, "")
			if r.name == "iscsi-target" {
				w.mustEnd(w.run(contract.Provision, clone), contract.ExitBadRequest, "claim: the storage cannot clone this source") // no reflinks
				w.write("box/reflinks", "")
				w.write("box/volumes/"+source.PVName+"/disk", strings.Repeat("data", mebi/4))
				small := clone
				small.Size = mebi - 512
				w.mustEnd(w.run(contract.Provision, small), contract.ExitBadRequest, "claim: a clone cannot be smaller than its source")
			}
			for range 2 {
				w.mustEnd(w.run(contract.Provision, clone), 0, "")
			}
			if sizes := w.recipe.volumes(w); sizes[clone.UID] < 6*mebi || len(sizes) != 2 {
				t.Fatalf("the volumes are %v", sizes)
			}
			w.mustBeAClone(source, clone)
			w.mustEnd(w.run(contract.Provision, claim(2, cloneOf(3))), contract.ExitBadRequest, "claim: the volume was created from another source")
			w.mustEnd(w.run(contract.Provision, claim(4, cloneOf(1), func(c *contract.Request) { c.Source.PVName = "by-hand" })), contract.ExitBadRequest, "claim: the storage cannot clone")
			for _, c := range []contract.Request{source, clone, claim(4)} { // the source first
				w.mustEnd(w.run(contract.Delete, c), 0, "")
			}
			w.mustHaveNothing()
		})
	}
}

// The PV of a clone says no more than its volume has, and its claim counts for no less.
func TestACloneHasAtLeastTheSizeOfItsSource(t *testing.T) {
	t.Parallel()
	for _, r := range []recipe{iscsiTarget(), overLVM()} {
		w, source := newWorld(t, r), claim(1)
		w.write("box/reflinks", "")
		w.mustEnd(w.run(contract.Provision, source), 0, "")
		w.mustEnd(w.run(contract.Provision, claim(2, cloneOf(1))), 0, "") // LVM has rounded the size of the source up
		source.Size = 6 * mebi
		w.mustEnd(w.run(contract.Expand, source), 0, "")
		w.mustEnd(w.run(contract.Provision, claim(3, cloneOf(1))), contract.ExitBadRequest, "claim: a clone cannot be smaller than its source: request at least")
		w.mustEnd(w.run(contract.Delete, claim(3)), 0, "")
		for i, size := range []int64{6 * mebi, 20*mebi + 1} {
			clone := claim(4+i, cloneOf(1), func(c *contract.Request) { c.Size = size })
			for range 2 {
				w.mustEnd(w.run(contract.Provision, clone), 0, "")
			}
			if has := w.recipe.volumes(w)[clone.UID]; has < size || has >= size+extent {
				t.Errorf("%s: a clone of %d bytes has %d", r.name, size, has)
			}
		}
		if sizes := w.recipe.volumes(w); len(sizes) != 4 {
			t.Errorf("%s: the volumes are %v", r.name, sizes)
		}
	}
}

// A clone of an xfs has the UUID of its source, and may be mounted where that is.
func TestACloneOfAnXFSIsMountedBesideItsSource(t *testing.T) {
	t.Parallel()
	clone := claim(2, cloneOf(1), func(c *contract.Request) { c.MountOptions = []string{"noatime"} })
	box := newWorld(t, iscsiTarget())
	box.write("box/reflinks", "")
	box.mustEnd(box.run(contract.Provision, claim(1)), 0, "")
	image := newPlayedCeph(t, flattened(clone)+`[ "$words" = "snap ls --format json `+claim(1).PVName+`" ] || end 99 "$words"
echo '[]'`)
	for _, w := range []*world{box, image} {
		for _, test := range [][3]string{
			{"xfs", "Filesystem", "[noatime nouuid]"}, {"ext4", "Filesystem", "<nil>"}, {"xfs", "Block", "<nil>"},
		} {
			w.api.Forget()
			w.properties["fstype"], clone.VolumeMode = test[0], test[1]
			w.mustEnd(w.run(contract.Provision, clone), 0, "")
			if got := fmt.Sprint(w.api.All("persistentvolumes")[0].At("spec", "mountOptions")); got != test[2] {
				t.Errorf("%s, %s: what the script says of mount options is %s, want %s", w.recipe.name, test, got, test[2])
			}
		}
	}
}

// mustBeAClone checks what the clone has of its source, and that its PV says so.
func (w *world) mustBeAClone(source, clone contract.Request) {
	w.t.Helper()
	if w.recipe.name == "lvm" {
		state(w.dir, "lvm", func(group *lvm) {
			if origin := group.Volumes[clone.PVName].Origin; origin != source.PVName {
				w.t.Errorf("its origin is %q", origin)
			}
		})
	} else if data, err := os.ReadFile(filepath.Join(w.dir, "box/volumes", clone.PVName, "disk")); err != nil || !strings.HasPrefix(string(data), "datadata") {
		w.t.Errorf("it has %.20q, %v", data, err)
	}
	for _, pv := range w.api.All("persistentvolumes") {
		want := any(nil)
		if pv.At("metadata", "name") == clone.PVName {
			want = "app/data-1"
		}
		if got := pv.At("metadata", "annotations", "flex-provisioner.io/clone-of"); got != want {
			w.t.Errorf("the annotation of %v is %v, want %v", pv.At("metadata", "name"), got, want)
		}
	}
}
