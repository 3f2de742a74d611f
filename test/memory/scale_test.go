package memory_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/test/bench/plan"
	"github.com/flex-provisioner/flex-provisioner/test/bench/report"
)

// scaleSizes are the clusters that are measured, by their bound claims.
var scaleSizes = []int{1000, 3000, 10_000, 30_000, 100_000}

// How long a dispatcher is left alone before, and while, it is measured what it uses without work.
const (
	pauseBefore = 5 * time.Second
	idleFor     = 20 * time.Second
	calmDown    = 2 * time.Minute
)

// scale is what was measured in a cluster of a size.
type scale struct {
	Claims int `json:"claims"`
	// Ready and Served are seconds from the start of the process: until /readyz answers 200, and
	// until a claim that waits has its Job.
	Ready  float64 `json:"ready"`
	Served float64 `json:"served"`
	// StartCPU is seconds of a core that the process has used until then.
	StartCPU float64 `json:"startCPU"`
	// Next is seconds from the creation of a claim until its Job was created, when the dispatcher
	// had been at rest.
	Next float64 `json:"next"`
	// Idle is how much of a core is used without work, StandbyIdle by a replica that does not lead,
	// in percent.
	Idle        float64 `json:"idle"`
	StandbyIdle float64 `json:"standbyIdle,omitempty"`
	// RSS and Peak are MiB.
	RSS  uint64 `json:"rss"`
	Peak uint64 `json:"peak"`
	// Death and Stop are seconds from the leader's end until a claim that was made then has its
	// Job.
	Death float64 `json:"death,omitempty"`
	Stop  float64 `json:"stop,omitempty"`
}

func TestScale(t *testing.T) {
	server := startAPIServer(t, kubeFor(t, plan.Scale))
	_, soft := shipped(t)
	t.Setenv("GOMEMLIMIT", soft)
	var all []scale
	for _, claims := range scaleSizes {
		server.grow(lot{bound: claims, text: 100})
		one := measureScale(server, ours, claims == scaleSizes[len(scaleSizes)-1])
		t.Logf("%+v", one)
		all = append(all, one)
	}
	writeScales(t, all)
	results := report.Results{resultOf(plan.Scale, "ours", server.claims, all[len(all)-1].figures())}
	if file := base(); file != "" && isAsked("base") {
		results = append(results, resultOf(plan.Scale, "base", server.claims, measureScale(server, file, true).figures()))
	}
	writeResults(t, results, report.Scale)
}

// process is a program in a large cluster.
type process struct {
	server  *apiServer
	cmd     *exec.Cmd
	address string // of its metrics
	started time.Time
}

// dispatcherOf starts a dispatcher.
func dispatcherOf(s *apiServer, file string) *process {
	s.t.Helper()
	p := &process{server: s, address: freeAddress(s.t), started: time.Now()}
	p.cmd = background(s.t, s.dir, "flex-dispatcher-"+p.address[len("127.0.0.1:"):], file, "--kubeconfig="+s.kubeconfig, "--listen="+p.address,
		"--namespace="+configNamespace, "--leader-elect-resource-namespace="+systemNamespace)
	return p
}

// awaitReady waits until /readyz answers 200, and returns when.
func (p *process) awaitReady() time.Time {
	p.server.t.Helper()
	await(p.server.t, 2*time.Minute, "a dispatcher to be ready", func() error {
		answer, err := http.Get("http://" + p.address + "/readyz")
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		if answer.StatusCode != http.StatusOK {
			return errNotReady
		}
		return nil
	})
	return time.Now()
}

// end sends a signal and waits until the process has ended. It returns when the signal was sent.
func (p *process) end(signal os.Signal) time.Time {
	p.server.t.Helper()
	at := time.Now()
	if err := p.cmd.Process.Signal(signal); err != nil {
		p.server.t.Error(err)
	}
	_ = p.cmd.Wait()
	return at
}

// cpu returns the time that the process has used on a core.
func (p *process) cpu() time.Duration {
	p.server.t.Helper()
	const user, system, tick = 11, 12, 10 * time.Millisecond // counted from the state, which follows the name
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "stat"))
	p.server.must(err)
	words := strings.Fields(string(text[strings.LastIndex(string(text), ")")+1:]))
	sum := 0
	for _, at := range []int{user, system} {
		n, err := strconv.Atoi(words[at])
		p.server.must(err)
		sum += n
	}
	return time.Duration(sum) * tick
}

// awaitRest waits until the process has nothing to do any more.
func (p *process) awaitRest() {
	p.server.t.Helper()
	const little = 50 * time.Millisecond
	for end := time.Now().Add(calmDown); time.Now().Before(end); {
		before := p.cpu()
		time.Sleep(2 * time.Second)
		if p.cpu()-before < little {
			break
		}
	}
	time.Sleep(pauseBefore)
}

// status returns a field of what the kernel says of the process, in MiB.
func (p *process) status(field string) uint64 {
	p.server.t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid), "status"))
	p.server.must(err)
	return kernelSays(string(text), field) >> 20
}

// measureScale measures a dispatcher in a cluster as it is: a start, and a leader at rest. If it is
// asked for, it measures how other replicas follow.
func measureScale(s *apiServer, file string, failover bool) scale {
	s.t.Helper()
	waits := s.newClaim()
	d := dispatcherOf(s, file)
	out := scale{Claims: s.claims}
	out.Ready = d.awaitReady().Sub(d.started).Seconds()
	out.Served = s.awaitJob(waits).Sub(d.started).Seconds()
	out.StartCPU = d.cpu().Seconds()
	d.awaitRest()
	out.Idle = idle(d)
	from := time.Now()
	out.Next = s.awaitJob(s.newClaim()).Sub(from).Seconds()
	out.RSS, out.Peak = d.status("VmRSS:"), d.status("VmHWM:")
	if failover {
		d = measureFailover(s, file, d, &out)
	}
	d.end(syscall.SIGTERM)
	s.removeNew()
	return out
}

// measureFailover ends one leader by SIGKILL and the next by SIGTERM, and returns the last one.
func measureFailover(s *apiServer, file string, leader *process, out *scale) *process {
	s.t.Helper()
	second := dispatcherOf(s, file)
	second.awaitReady()
	second.awaitRest()
	out.StandbyIdle = idle(second)
	out.Death = follow(s, leader, syscall.SIGKILL)
	third := dispatcherOf(s, file)
	third.awaitReady()
	third.awaitRest()
	out.Stop = follow(s, second, syscall.SIGTERM)
	return third
}

// follow ends the leader, and returns after how many seconds another one has served a claim that
// was made then.
func follow(s *apiServer, leader *process, signal os.Signal) float64 {
	s.t.Helper()
	ended := make(chan time.Time)
	go func() { ended <- leader.end(signal) }()
	uid := s.newClaim()
	served := s.awaitJob(uid)
	return served.Sub(<-ended).Seconds()
}

// idle returns how much of a core is used by processes without work, in percent.
func idle(p *process) float64 {
	p.server.t.Helper()
	before := p.cpu()
	time.Sleep(idleFor)
	return 100 * (p.cpu() - before).Seconds() / idleFor.Seconds()
}

// writeScales writes what was measured, and fails where it is not what it is to be.
func writeScales(t *testing.T, all []scale) {
	t.Helper()
	text, missed := scaleTable(all), 0
	for _, target := range scaleTargets(all[len(all)-1]) {
		word := "met"
		if target.measured > target.most {
			word, missed = "missed", missed+1
		}
		text += fmt.Sprintf("%-60s at most %5.2f, measured %5.2f: %s\n", target.name, target.most, target.measured, word)
	}
	t.Log("\n" + text)
	dir := "../../bin/bench-scale"
	for _, err := range []error{
		os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, "scale.txt"), []byte(text), 0o644),
		os.WriteFile(filepath.Join(dir, "scale.json"), scaleJSON(t, all), 0o644), os.WriteFile(filepath.Join(dir, "scale.svg"), []byte(scaleSVG(all)), 0o644),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	if missed > 0 {
		t.Errorf("%d targets were missed", missed)
	}
}
