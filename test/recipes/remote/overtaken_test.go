//go:build recipes

package remote

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// processes returns those of the world, of one program or of all.
func (w *world) processes(program string) (all []int) {
	w.t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/environ")
	must(w.t, err)
	for _, file := range files {
		environment, _ := os.ReadFile(file) // of one that has ended meanwhile it is empty
		is, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "comm"))
		if strings.Contains(string(environment), worldVariable+"="+w.dir) && (program == "" || program == strings.TrimSpace(string(is))) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			must(w.t, err)
			all = append(all, pid)
		}
	}
	return all
}

func (w *world) await(says string, is func() bool) {
	w.t.Helper()
	for range 600 {
		if is() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	w.t.Fatal(says)
}

// A pod is evicted while its run waits on the box. When the box is free, the claim may have been
// undone, or deleted and made again.
func TestARunWhoseConnectionHasEndedChangesNothing(t *testing.T) {
	t.Parallel()
	for file, r := range map[string]recipe{"box/volumes/.lock": iscsiTarget(), "box/flex-lvm": overLVM(), "box/flex-zfs": overZFS()} {
		for _, verb := range []contract.Verb{contract.Provision, contract.Delete} {
			w, c := newWorld(t, r), claim(1)
			if verb == contract.Delete {
				w.mustEnd(w.run(contract.Provision, c), 0, "")
			}
			must(t, locked(filepath.Join(w.dir, file), func(*os.File) error {
				end := w.start(0, verb, c)
				w.await("the run does not wait", func() bool { return len(w.processes("flock")) > 0 })
				group, err := syscall.Getpgid(w.processes("script")[0])
				must(t, err)
				must(t, syscall.Kill(-group, syscall.SIGKILL)) // what is on the box is of another group
				end()
				w.await("ssh does not end", func() bool { return len(w.processes("ssh")) == 0 })
				return nil
			}))
			w.await("the run goes on", func() bool { return len(w.processes("")) == 0 })
			if verb == contract.Delete {
				w.mustHave(mebi, c)
			} else {
				w.mustHaveNothing()
			}
		}
	}
}
