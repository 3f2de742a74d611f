//go:build recipes

package remote

import (
	"encoding/json"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// The played box says 24,576 bytes of a data set, and 25 percent of a logical volume that is active.
func TestListSaysWhatVolumesUse(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		recipe recipe
		share  int64
		used   contract.Used
	}{
		"zfs": {overZFS(), 0, contract.UsedBytes(24576)},
		"lvm": {overLVM(), 4, contract.Used{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, test.recipe)
			w.mustEnd(w.run(contract.Provision, claim(1)), 0, "")
			listed := func() (listed contract.Listed) {
				e := w.run(contract.List, claim(9))
				w.mustEnd(e, 0, `{"lines":1}`)
				must(t, json.Unmarshal([]byte(e.out), &listed))
				return listed
			}
			got, want := listed(), test.used
			if test.share > 0 {
				want = contract.UsedBytes(got.Size / test.share)
			}
			if got.Used != want {
				t.Errorf("it uses %+v, want %+v", got.Used, want)
			}
			if name != "lvm" {
				return
			}
			state(w.dir, "lvm", func(group *lvm) {
				for volume, v := range group.Volumes {
					v.Inactive = true
					group.Volumes[volume] = v
				}
			})
			if got := listed(); got.Used.Known {
				t.Errorf("a volume that is not active uses %d bytes", got.Used.Bytes)
			}
		})
	}
}
