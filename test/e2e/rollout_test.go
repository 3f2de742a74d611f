//go:build e2e

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// logsRun begins a script with a line in a file of the node, and writes another when it ends. The
// node adds nothing to them: they are the containers' own. It is asked for by the test's name, in
// the config.
const logsRun = `log=` + volumesFolder + `/runs-$FLEX_E2E
trap 'exit 143' TERM
trap 'echo "$HOSTNAME $FLEX_CLAIM_UID $FLEX_VERB end $EPOCHREALTIME" >>$log' EXIT
echo "$HOSTNAME $FLEX_CLAIM_UID $FLEX_VERB begin $EPOCHREALTIME" >>$log
sleep 1
`

// The dispatchers are replaced, twice while thirty claims are provisioned and once while they are
// deleted. Every claim is bound, nothing is left, and by the containers' own log no two containers
// of one claim ran at once. No other test runs: the dispatchers are those of all.
func TestRollingUpdateRunsNoTwoContainersOfOneClaimAtOnce(t *testing.T) {
	w := newWorld(t, "rollout")
	w.class(w.ns, parameter("flex-provisioner.io/config-namespace", nodeNamespace))
	w.config(nodeNamespace, w.ns, scripted(logsRun+deletes+offer, map[string]string{"e2e": w.ns}, mountsDirectories))
	w.remove(w.removeRunLogs)
	const many = 30
	started := time.Now()
	claims := w.crowd(w.ns, nodeNamespace, many)
	w.rollOut()
	t.Logf("the first update ended after %.1f s: %v", time.Since(started).Seconds(), claims.bound(w.ctx()))
	w.rollOut()
	t.Logf("the second update ended after %.1f s: %v", time.Since(started).Seconds(), claims.bound(w.ctx()))
	w.eventually(4*time.Minute, "all claims to be bound", claims.bound)
	t.Logf("%d claims bound in %.1f s", many, time.Since(started).Seconds())

	started = time.Now()
	claims.deleteAll()
	w.rollOut()
	t.Logf("the third update ended after %.1f s: %v", time.Since(started).Seconds(), claims.gone(w.ctx()))
	w.eventually(4*time.Minute, "nothing to be left", claims.gone)
	t.Logf("%d claims gone in %.1f s", many, time.Since(started).Seconds())
	w.checkRuns(claims)
}

// rollOut replaces both dispatchers, as an update does.
func (w *world) rollOut() {
	w.t.Helper()
	patch := fmt.Sprintf(`{"spec": {"template": {"metadata": {"annotations": {"e2e.example.com/rolled-out": %q}}}}}`, time.Now().Format(time.RFC3339Nano))
	_, err := kube.AppsV1().Deployments(systemNamespace).Patch(w.ctx(), dispatcher, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	w.must(err, "update the dispatchers")
	w.eventually(3*time.Minute, "the dispatchers to be replaced", dispatchersReady)
}

// containerRun is what one container wrote of itself.
type containerRun struct {
	pod, uid, verb string
	begin, end     float64
}

// checkRuns checks that the containers of one claim ran one after another, and that each claim had
// its runs.
func (w *world) checkRuns(claims *crowd) {
	w.t.Helper()
	byClaim := map[string][]containerRun{}
	count := map[string]int{}
	for _, run := range w.containerRuns() {
		byClaim[run.uid] = append(byClaim[run.uid], run)
		count[run.verb]++
	}
	w.t.Logf("containers by verb: %v", count)
	for uid := range claims.uids {
		runs := byClaim[uid]
		if len(runs) < 2 {
			w.t.Errorf("of the claim %s only these containers are known: %v", uid, runs)
		}
		slices.SortFunc(runs, func(a, b containerRun) int {
			if a.begin < b.begin {
				return -1
			}
			return 1
		})
		for i := 1; i < len(runs); i++ {
			if before := runs[i-1]; before.end == 0 || runs[i].begin < before.end {
				w.t.Errorf("two containers of one claim ran at once: %+v and %+v", before, runs[i])
			}
		}
	}
}

// containerRuns reads the containers' own lines on both nodes.
func (w *world) containerRuns() []containerRun {
	w.t.Helper()
	runs := map[string]*containerRun{}
	for _, node := range nodes {
		text, err := os.ReadFile(w.runLog(node))
		w.must(err, "read the containers' log on node"+node)
		for line := range strings.Lines(string(text)) {
			field := strings.Fields(line)
			if len(field) != 5 {
				w.t.Fatalf("a container wrote %q", line)
			}
			at, err := strconv.ParseFloat(field[4], 64)
			w.must(err, "read the time of a container")
			if field[3] == "begin" {
				runs[field[0]] = &containerRun{pod: field[0], uid: field[1], verb: field[2], begin: at}
			} else {
				runs[field[0]].end = at
			}
		}
	}
	var out []containerRun
	for _, run := range runs {
		out = append(out, *run)
	}
	return out
}

// runLog is the containers' log on a node, as the host sees it.
func (w *world) runLog(node string) string {
	return filepath.Join(labState(), "kube", "node"+node, "volumes", "runs-"+w.ns)
}

func (w *world) removeRunLogs() {
	for _, node := range nodes {
		if err := os.Remove(w.runLog(node)); err != nil && !os.IsNotExist(err) {
			w.t.Errorf("remove the containers' log: %v", err)
		}
	}
}
