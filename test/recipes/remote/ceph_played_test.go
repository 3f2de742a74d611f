//go:build recipes

package remote

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// newPlayedCeph returns a world in which rbd is a script: for failures that a real Ceph shows only
// when it is interrupted. The script has the words of a call, without the options of all calls, and
// keeps what it wants to in the directory of the world.
func newPlayedCeph(t *testing.T, script string) *world {
	t.Helper()
	w := newWorld(t, recipe{name: "ceph-rbd", setUp: func(w *world) {
		w.write("etc/secret/userID", "flex")
		w.write("etc/secret/userKey", "key")
		w.properties = map[string]string{"monitors": "192.0.2.1", "pool": "volumes", "cluster-id": "cluster", "node-secret": "ceph-rbd"}
		w.write("programs/rbd", "#!/bin/bash\ncd "+w.dir+"\n"+`words=" $* " && words=${words#*--rados-osd-op-timeout 60 } && words=${words//--no-progress /} && words=${words% }`+"\n"+
			"end() { echo \"rbd: error $2\" >&2; exit \"$1\"; }\n"+script)
	}})
	must(t, os.Chmod(w.dir+"/programs/rbd", 0o755))
	return w
}

// flattened plays a clone of claim 1 that an earlier run has completed and flattened.
func flattened(clone contract.Request) string {
	return `case $words in
  "image-meta get ` + clone.PVName + ` flex") echo '{"volume":"` + clone.PVName + `","from":"` + claim(1).PVName + `"}'; exit ;;
  "info --format json ` + clone.PVName + `") echo '{"size":1048576}'; exit ;;
esac
`
}

// Without its pool Ceph says of every image that it does not exist. A pool that was renamed still
// has it.
func TestACephWithoutItsPoolHasNotDeletedTheImage(t *testing.T) {
	t.Parallel()
	w := newPlayedCeph(t, `end 2 "opening pool 'volumes': (2) No such file or directory"`)
	for _, undo := range []bool{false, true} {
		c := claim(1)
		c.Undo = undo
		w.mustEnd(w.run(contract.Delete, c), contract.ExitTempFail, "claim: Ceph has no pool volumes")
	}
	w = newPlayedCeph(t, `[ "$words" != "ls --format json" ] || { echo '[]'; exit; }
[ "$words" != "ls --long --format json" ] || { echo '[]'; exit; }
end 2 "image does not exist"`)
	w.mustEnd(w.run(contract.Delete, claim(1)), 0, "")
}

// A snapshot that is not removed keeps its image from ever being deleted.
func TestASnapshotThatCephDoesNotShowIsNotTakenForRemoved(t *testing.T) {
	t.Parallel()
	clone := claim(2, cloneOf(1))
	w := newPlayedCeph(t, flattened(clone)+`[ "$words" = "snap ls --format json `+claim(1).PVName+`" ] || end 99 "$words"
end 110 "(110) Connection timed out"`)
	w.mustEnd(w.run(contract.Provision, clone), contract.ExitTempFail, "claim: Ceph does not answer")
	if pvs := w.api.All("persistentvolumes"); len(pvs) > 0 {
		t.Errorf("there are the PVs %v", pvs)
	}
}

// rbd ls --long leaves out what it cannot open, says so, and succeeds.
func TestAnUndoThatDoesNotSeeAllCephImagesIsTriedAgain(t *testing.T) {
	t.Parallel()
	for says, code := range map[string]int{
		"opening pvc-1: (110) Connection timed out":       contract.ExitTempFail,
		"processing image pvc-1: (22) Invalid argument":   contract.ExitTempFail,
		"opening pvc-1: (2) No such file or directory":    0,
		"opening pvc-1: (2) No such file or directory\nx": 0,
	} {
		w := newPlayedCeph(t, `[[ $words == ls* ]] || end 2 "image does not exist"
echo '[]'; echo 'rbd: error `+says+`' >&2`)
		c := claim(2)
		c.Undo = true
		if e := w.run(contract.Delete, c); e.code != code {
			t.Errorf("%s: exit %d, want %d:\n%s%s", says, e.code, code, e.out, e.message)
		}
	}
}

// Whoever may write to the pool names its images, and by librbd as they like. rbd reads such a name as an option, as a snapshot, or as an image of another pool.
func TestAHostileNameOfACephImageIsNotUsed(t *testing.T) {
	t.Parallel()
	undone, own := claim(2), claim(1).PVName
	undone.Undo = true
	hostile := []string{"--pool=other", "-h", own + "@other", "other/" + own, "other/ns/" + own, own + "\n--pool=other", own + "\n", own + " --pool=other", "*", "pvc-1"}
	var listed, long []string
	for _, image := range append(hostile, own) {
		listed = append(listed, fmt.Sprintf("%q", image))
		long = append(long, fmt.Sprintf(`{"image":%q,"snapshot":%q}`, image, undone.PVName))
	}
	w := newPlayedCeph(t, strings.ReplaceAll(`case $words in
  "ls --format json") cat listed ;;
  "ls --long --format json") cat long ;;
  "image-meta get OWN flex") echo '{"uid":"`+claim(1).UID+`","volume":"OWN"}' ;;
  "info --format json OWN") echo '{"size":1048576}' ;;
  "snap ls --format json OWN") echo '[{"name":"`+undone.PVName+`","protected":"true"}]' ;;
  "snap unprotect OWN@`+undone.PVName+`" | "snap rm OWN@`+undone.PVName+`") ;;
  "rm `+undone.PVName+`") end 2 "image does not exist" ;;
  *) end 99 "$words" ;;
esac
`, "OWN", own))
	w.write("listed", "["+strings.Join(listed, ",")+"]")
	w.write("long", "["+strings.Join(long, ",")+"]")
	w.mustEnd(w.run(contract.Delete, undone), 0, "")
	w.mustEnd(w.run(contract.List, claim(9)), 0, `{"lines":1}`)
	removed := 0
	for _, c := range w.calls() {
		if c.Name == "rbd" && slices.Contains(c.Arguments, "rm") && slices.Contains(c.Arguments, own+"@"+undone.PVName) {
			removed++
		}
	}
	if removed != 1 {
		t.Errorf("the snapshot of the volume is removed %d times", removed)
	}
}

// A killed unprotect leaves a snapshot that rbd shows as not protected, and that it does not remove.
func TestASnapshotOfAKilledUnprotectIsRemoved(t *testing.T) {
	t.Parallel()
	clone, source := claim(2, cloneOf(1)), claim(1).PVName
	w := newPlayedCeph(t, flattened(clone)+strings.ReplaceAll(`status=$(<snapshot)
case $words in
  "snap ls --format json SOURCE")
    if [ "$status" = removed ]; then echo '[]'; exit; fi
    if [ "$status" = protected ]; then protected=true; else protected=false; fi
    echo '[{"name":"`+clone.PVName+`","protected":"'$protected'"}]' ;;
  "snap protect SOURCE@"*) [ "$status" != protected ] || end 16 protected; echo protected >snapshot ;;
  "snap unprotect SOURCE@"*) [ "$status" != unprotected ] || end 22 "already unprotected"; echo unprotected >snapshot ;;
  "snap rm SOURCE@"*) [ "$status" = unprotected ] || end 16 busy; echo removed >snapshot ;;
  *) end 99 "$words" ;;
esac
`, "SOURCE", source))
	for _, status := range []string{"unprotecting", "unprotected", "protected", "removed"} {
		w.write("snapshot", status)
		w.mustEnd(w.run(contract.Provision, clone), 0, "")
		if left, err := os.ReadFile(w.dir + "/snapshot"); strings.TrimSpace(string(left)) != "removed" {
			t.Errorf("%s: the snapshot is %s, %v", status, left, err)
		}
	}
}

// Its claim would count for less than it uses.
func TestACephCloneIsNotSmallerThanItsSource(t *testing.T) {
	t.Parallel()
	w := newPlayedCeph(t, `[ "$words" != "info --format json `+claim(1).PVName+`" ] || { echo '{"size":2097152}'; exit; }
[[ $words != snap* ]] || end 99 "$words"
end 2 "does not exist"`)
	w.mustEnd(w.run(contract.Provision, claim(2, cloneOf(1))), contract.ExitBadRequest, "claim: a clone cannot be smaller than its source: request at least 2097152 bytes")
	w.mustEnd(w.run(contract.Provision, claim(2, cloneOf(1), func(c *contract.Request) { c.Size = mebi + 1 })), contract.ExitTempFail, "error 99")
}
