package shell

import (
	"os"
	"path/filepath"
	"testing"
)

// A pod may write to its volume while that is deleted. Between the listing of a directory and the
// descent into what it lists, it replaces that directory by a link to that of all volumes, in which
// a path leads to another volume by the name that was listed.
func TestDeleteStaysInAVolumeWhosePodSwapsLinks(t *testing.T) {
	for name, target := range map[string]func(base string) string{
		"relative": func(string) string { return ".." },
		"absolute": func(base string) string { return base },
	} {
		t.Run(name, func(t *testing.T) {
			base := filepath.Join(t.TempDir(), "flex-volumes")
			own, victim := base+"/pvc-1", base+"/pvc-2/data"
			must(t, os.MkdirAll(own+"/d/pvc-2/deeper", 0o755))
			must(t, os.MkdirAll(base+"/pvc-2", 0o755))
			must(t, os.WriteFile(victim, nil, 0o600))
			top, err := os.OpenRoot(own)
			must(t, err)
			defer top.Close()
			swapped := false
			w := walk{top: top, dir: own, listed: func(path string) {
				if path == "d/" && !swapped {
					must(t, os.Rename(own+"/d", own+"/.d"))
					must(t, os.Symlink(target(base), own+"/d"))
					swapped = true
				}
			}}
			w.clear(top, "", 0)
			if !swapped {
				t.Error("nothing was swapped")
			}
			if code, says := flex(own); code != 0 {
				t.Errorf("when the pod has ended, the next run exits with %d: %s", code, says)
			}
			if _, err := os.Lstat(own); !os.IsNotExist(err) {
				t.Errorf("the volume is not deleted: %v", err)
			}
			_, err = os.Stat(victim)
			must(t, err)
		})
	}
}
