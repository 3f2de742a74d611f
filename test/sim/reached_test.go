package sim_test

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/test/logsink"
)

// What a long run has to reach, each so often. A run is long from so many seeds on.
const (
	longRun  = 5000
	reachFor = 100
)

// totals are how often each act and fault has happened, and each action and verdict was reached, in
// all seeds.
type totals struct {
	mu     sync.Mutex
	seeds  int
	counts map[string]int
}

var happened = totals{counts: map[string]int{}}

func (h *totals) add(counts map[string]int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seeds++
	for name, n := range counts {
		h.counts[name] += n
	}
}

// print prints all counts, and returns what a long run has not reached often enough.
func (h *totals) print() []string {
	fmt.Printf("%8d seeds\n", h.seeds)
	for _, name := range wanted() {
		h.counts[name] += 0 // what was never reached is printed, too
	}
	for _, name := range slices.Sorted(maps.Keys(h.counts)) {
		fmt.Printf("%8d times %s\n", h.counts[name], name)
	}
	if h.seeds < longRun {
		return nil
	}
	return slices.DeleteFunc(wanted(), func(name string) bool { return h.counts[name] >= reachFor })
}

// wanted returns what a long run has to reach: each act, fault, action and verdict.
func wanted() []string {
	var out []string
	for _, one := range append(slices.Clone(people), faults...) {
		out = append(out, one.name)
	}
	for _, verdict := range []contract.Verdict{
		contract.Done, contract.BadConfig, contract.BadRequest, contract.NoCapacity, contract.NoCredentials, contract.TryAgain,
		contract.NotStarted, contract.Disrupted, contract.Unknown, contract.Unlisted,
	} {
		out = append(out, "verdict "+string(verdict))
	}
	source, err := os.ReadFile("../../dispatcher/decide/action.go")
	if err != nil {
		panic(err)
	}
	for _, match := range regexp.MustCompile(`(?m)^func \((?:a )?(\w+)\) traits\(\)`).FindAllStringSubmatch(string(source), -1) {
		out = append(out, "action decide."+match[1])
	}
	return out
}

// countReached counts the actions and the verdicts of a world. What is done for all claims of a Job
// at once is counted by what it writes.
func (w *world) countReached() {
	for name, n := range logsink.Of(w.Log).Counts() {
		if strings.HasPrefix(name, "action ") {
			w.counts[name] += int(n)
		}
	}
	recorded := map[string]string{}
	for _, change := range w.Server.History() {
		if pod, isPod := change.Now.(*corev1.Pod); isPod && change.By == fakecluster.DispatcherName && isGated(change.Old) && !isGated(pod) {
			w.counts["action decide.Confirm"]++
		}
		job, isJob := change.Now.(*batchv1.Job)
		if !isJob {
			continue
		}
		if change.Verb == "create" {
			w.counts["action decide.Launch"]++
		}
		for _, uid := range jobs.UIDs(job) {
			out := jobs.RecordOf(job, uid).Recorded
			if key := job.Name + " " + uid; out != nil && recorded[key] != fmt.Sprintf("%+v", *out) {
				recorded[key] = fmt.Sprintf("%+v", *out)
				w.counts["action decide.RecordOutcome"]++
				w.counts["verdict "+string(out.Verdict)]++
			}
		}
	}
}

func isGated(obj fakecluster.Object) bool {
	pod, isPod := obj.(*corev1.Pod)
	return isPod && len(pod.Spec.SchedulingGates) > 0
}
