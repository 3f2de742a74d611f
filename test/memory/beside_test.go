package memory_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/test/bench/plan"
	"github.com/flex-provisioner/flex-provisioner/test/bench/report"
)

// ours is the dispatcher of this checkout.
const ours = "../../bin/flex-dispatcher"

// base returns the dispatcher of another commit, empty if none is compared.
func base() string { return os.Getenv("BENCH_BASE_BIN") }

// The limit under which all programs are measured: one that none of them reaches, so that it makes
// no collector run more often. At rest Go collects the garbage every two minutes, and gives memory
// back to the system in the time after it.
const (
	limitOfAll  = "4GiB"
	percentOf   = "100"
	untilCalmed = 3 * time.Minute
)

// TestMemoryBesideOthers measures the programs as they are run, from outside, beside the same
// objects in a real API server: our dispatcher, that of another commit, and the csi
// external-provisioner.
func TestMemoryBesideOthers(t *testing.T) {
	server := startAPIServer(t, kubeFor(t, plan.Memory))
	t.Setenv("GOMEMLIMIT", limitOfAll)
	t.Setenv("GOGC", percentOf)
	l := lot{bound: 100_000, text: 2 << 10}
	server.grow(l)
	var results report.Results
	for _, row := range plan.Large {
		start := programOf(row)
		if start == nil || !isAsked(row.Name) {
			t.Logf("%s is not measured", row.Title)
			continue
		}
		results = append(results, resultOf(plan.Memory, row.Name, l.bound, start(server).memory(l.bound)))
	}
	writeResults(t, results, report.Memory)
}

// kubeFor returns where Kubernetes is, if a column is to be measured.
func kubeFor(t *testing.T, column plan.Column) string {
	t.Helper()
	if os.Getenv("BENCH_LARGE") != string(column) {
		t.Skip("minutes long: make bench-" + string(column))
	}
	return os.Getenv("KUBE_BIN")
}

// isAsked reports whether a row is one of those that are asked for. Without names all are.
func isAsked(row string) bool {
	asked := strings.Fields(os.Getenv("BENCH_ROWS"))
	return len(asked) == 0 || slices.Contains(asked, row)
}

// programOf returns what starts the program of a row, nil if it was not built.
func programOf(row plan.Row) func(*apiServer) *process {
	peers := os.Getenv("BENCH_PEERS_BIN")
	switch {
	case row.Kind == plan.CSI && peers != "":
		return func(s *apiServer) *process { return csiOf(s, peers) }
	case row.Base && base() != "":
		return func(s *apiServer) *process { return dispatcherOf(s, base()) }
	case row.Kind == plan.Ours && !row.Base:
		return func(s *apiServer) *process { return dispatcherOf(s, ours) }
	}
	return nil
}

// csiOf starts the csi external-provisioner and a driver. The driver's memory does not count.
func csiOf(s *apiServer, bin string) *process {
	s.t.Helper()
	socket := filepath.Join(s.dir, "csi.sock")
	background(s.t, s.dir, "csi-driver", filepath.Join(bin, "csi-driver"), "--socket="+socket, "--name=csi.bench.example")
	p := &process{server: s, address: freeAddress(s.t), started: time.Now()}
	p.cmd = background(s.t, s.dir, "csi-provisioner", filepath.Join(bin, "csi-provisioner"), "--kubeconfig="+s.kubeconfig, "--csi-address="+socket, "--http-endpoint="+p.address)
	return p
}

// memory returns what the process uses at rest, and ends it.
func (p *process) memory(claims int) map[string]float64 {
	t := p.server.t
	t.Helper()
	await(t, 5*time.Minute, "the caches to be filled", func() error {
		if p.heap() < float64(claims)*leastOfClaim {
			return errNotReady
		}
		return nil
	})
	p.awaitRest()
	time.Sleep(untilCalmed)
	out := map[string]float64{
		report.HeapEach: p.heap() / float64(claims),
		report.RSS:      float64(p.status("VmRSS:")), report.Peak: float64(p.status("VmHWM:")),
	}
	p.end(syscall.SIGTERM)
	return out
}

// leastOfClaim is less than what any program needs of a claim and its PV.
const leastOfClaim = 500

// heap returns what the process says of its heap, in bytes: 0 while it says nothing.
func (p *process) heap() float64 {
	answer, err := http.Get("http://" + p.address + "/metrics")
	if err != nil {
		return 0
	}
	defer func() { _ = answer.Body.Close() }()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		if text, is := strings.CutPrefix(lines.Text(), "go_memstats_heap_alloc_bytes "); is {
			bytes, _ := strconv.ParseFloat(text, 64)
			return bytes
		}
	}
	return 0
}

func resultOf(column plan.Column, row string, claims int, figures map[string]float64) report.Result {
	return report.Result{Column: column, Row: row, Claims: claims, Figures: figures}
}

// writeResults prints what was measured and whether it is what it is to be. make bench judges the
// files of the cells, with those of its other cells.
func writeResults(t *testing.T, results report.Results, topic report.Topic) {
	t.Helper()
	t.Log("\n" + report.Figures(results) + report.TargetTable(report.TargetsOf(results, topic)))
	dir := os.Getenv("BENCH_CELLS_DIR")
	for _, one := range results {
		if dir == "" {
			return
		}
		text, err := json.MarshalIndent(one, "", " ")
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, string(one.Column)+"-"+one.Row+".json"), append(text, '\n'), 0o600)
		}
		if err != nil {
			t.Error(err)
		}
	}
}
