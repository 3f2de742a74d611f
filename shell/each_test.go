package shell

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// each starts flex each with a script for each request, which is in the directory of the pod.
func (p *pod) each(n int, script string) *exec.Cmd {
	p.t.Helper()
	p.write("provision", "#!/bin/bash\nset -euo pipefail\n"+script)
	must(p.t, os.Chmod(p.dir+"/provision", 0o755))
	cmd := exec.CommandContext(p.t.Context(), "flex", "each", fmt.Sprint(n), p.dir+"/provision", "provision")
	bin := programs(p.t)
	cmd.Path, cmd.Err, cmd.Env = bin+"/flex", nil, p.environ(bin)
	cmd.Stdout, cmd.Stderr = &p.says, &p.says
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// results returns the results by the number of the claim.
func (p *pod) results() map[string]contract.Result {
	p.t.Helper()
	out := map[string]contract.Result{}
	for _, r := range contract.DecodeResults(p.message()) {
		out[r.UID] = r
	}
	if lines := strings.Count(p.message(), "\n"); lines != len(out) {
		p.t.Errorf("%d results on %d lines: %s", len(out), lines, p.message())
	}
	return out
}

// number is the number of the claim, in a script.
const number = `n=$((10#${FLEX_CLAIM_UID##*-}))` + "\n"

func TestABatchOfTwentyHasAResultForEach(t *testing.T) {
	p := newPod(t, contract.Provision, 20)
	k := p.serve()
	cmd := p.each(8, number+`
echo "works on $FLEX_CLAIM_NAME"
case $n in
  3) flex refuse 'no "such" class' ;;
  5) echo "claim: of the log" ; echo "a tool failed: $FLEX_PV_NAME" >&2; exit 42 ;;
  7) echo "claim: of the message" >"$FLEX_TERMINATION_LOG"; echo "claim: of the log"; exit 73 ;;
  9) kill -9 $$ ;;
  11) printf 'no line break'; head -c 40000 /dev/zero | tr '\0' x; exit 1 ;;
esac
flex pv '{"spec":{"nfs":{"server":"filer","path":"/export/'"$FLEX_PV_NAME"'"}}}'
`)
	code := exitOf(t, cmd.Run())
	got := p.results()
	if code != contract.ExitTempFail || len(got) != 20 || len(k.pvs) != 15 {
		t.Fatalf("exit %d, %d results, %d PVs: %s", code, len(got), len(k.pvs), &p.says)
	}
	want := map[int]string{
		3: `65 claim: no "such" class` + "\nworks on data-3", 5: "42 claim: of the log\na tool failed: pvc-" + uid(5), 7: "73 claim: of the message",
		9: "137 works on data-9",
	}
	for n := range 20 {
		r := got[uid(n)]
		said := fmt.Sprintf("%d %s", *r.Code, r.Message)
		switch failed, fails := want[n]; {
		case n == 11:
			if *r.Code != 1 || !strings.Contains(r.Message, "xxxxxx") {
				t.Errorf("claim 11 has %s", said)
			}
		case fails && said != failed, !fails && said != "0 ":
			t.Errorf("claim %d has %s", n, said)
		}
		if log := "pvc-" + uid(n) + ": works on data-" + fmt.Sprint(n) + "\n"; !strings.Contains(p.says.String(), log) {
			t.Errorf("the log has no %s", log)
		}
	}
	if len(p.message()) >= contract.MaxMessage || !strings.HasPrefix(p.message(), `{"uid":"`+uid(0)+`","code":0`) {
		t.Errorf("%d bytes: %.100s", len(p.message()), p.message())
	}
	if !strings.Contains(p.says.String(), "5 of 20 requests are not done") || strings.Contains(p.says.String(), "\nclaim: ") {
		t.Errorf("the log is %s", &p.says)
	}
	if left, _ := filepath.Glob(p.dir + "/flex-each-*"); len(left) > 0 {
		t.Errorf("it leaves %q", left)
	}
}

func TestTheLongestResultsFit(t *testing.T) {
	p := newPod(t, contract.Provision, contract.MaxBatch)
	code := exitOf(t, p.each(16, `flex refuse "$(head -c 3000 /dev/zero | tr '\0' x)"`).Run())
	if got := p.results(); code != contract.ExitBadRequest || len(got) != contract.MaxBatch || len(p.message()) >= contract.MaxMessage {
		t.Errorf("exit %d: %d results in %d bytes", code, len(got), len(p.message()))
	}
}

// The variables of jobs.environment are those of contract.OwnVariables, too.
func TestACommandHasTheEnvironmentOfItsRequestAlone(t *testing.T) {
	p := newPod(t, contract.Delete, 2)
	p.env["FLEX_FSTYPE"], p.env["FLEX_VERB"], p.env["FLEX_UNDO"], p.env["FLEX_STORAGE_CLASS"] = "ext4", "delete", "false", "gold"
	must(t, p.each(2, `env | grep -a ^FLEX_ | grep -v -e TERMINATION -e FLEX_TEST | sort >"$FLEX_TEST_DIR/$FLEX_CLAIM_UID"
[ "$1" = provision ] && [ ! -s "$FLEX_TERMINATION_LOG" ]
`).Run())
	for n := range 2 {
		r, err := os.ReadFile(p.dir + "/" + uid(n))
		must(t, err)
		want := []string{"FLEX_FSTYPE=ext4", "FLEX_VERB=delete", "FLEX_UNDO=false", "FLEX_STORAGE_CLASS=gold", "FLEX_PV=" + skeletonOf(uid(n))}
		alone := newPod(t, contract.Delete, n+1) // whose last request is the same
		text, err := os.ReadFile(alone.dir + "/request.json")
		must(t, err)
		request, _, _, err := contract.DecodeRequest(text, uid(n))
		must(t, err)
		for _, v := range request.OwnVariables() {
			want = append(want, contract.EnvName(v.Property)+"="+v.Value)
		}
		got := strings.Split(strings.TrimSpace(string(r)), "\n")
		slices.Sort(want)
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("it has  %q,\nand not %q", got, want)
		}
	}
}

func TestNoMoreThanNAtATime(t *testing.T) {
	p := newPod(t, contract.Provision, 12)
	must(t, p.each(3, `touch "$FLEX_TEST_DIR/now.$FLEX_CLAIM_UID"
set -- "$FLEX_TEST_DIR"/now.*; echo $# >"$FLEX_TEST_DIR/count.$FLEX_CLAIM_UID"
sleep 0.1
rm "$FLEX_TEST_DIR/now.$FLEX_CLAIM_UID"
`).Run())
	counts, err := filepath.Glob(p.dir + "/count.*")
	must(t, err)
	most := 0
	for _, path := range counts {
		text, err := os.ReadFile(path)
		must(t, err)
		n := 0
		_, err = fmt.Sscan(string(text), &n)
		must(t, err)
		most = max(most, n)
	}
	if len(counts) != 12 || most < 2 || most > 3 {
		t.Errorf("of %d commands, %d run at a time", len(counts), most)
	}
}

// The image runs with one request as without flex each, also where a description is the message.
func TestOneRequestIsRunInPlace(t *testing.T) {
	p := newPod(t, contract.Provision, 1)
	cmd := p.each(8, `echo "$PPID" >"$FLEX_TEST_DIR/parent"; flex pv '`+nfs+`'; echo "$FLEX_PV" >"$FLEX_TEST_DIR/pv"; exit 7`)
	if code := exitOf(t, cmd.Run()); code != 7 || p.message() != `{"source":{"nfs":{"path":"/a","server":"filer"}}}`+"\n" {
		t.Errorf("exit %d: %s: %s", code, p.message(), &p.says)
	}
	if parent, err := os.ReadFile(p.dir + "/parent"); err != nil || strings.TrimSpace(string(parent)) != fmt.Sprint(os.Getpid()) {
		t.Errorf("its parent is %s, %v", parent, err)
	}
	if pv, err := os.ReadFile(p.dir + "/pv"); err != nil || strings.TrimSpace(string(pv)) != skeletonOf(uid(0)) {
		t.Errorf("its PV is %s, %v", pv, err)
	}
}

func TestCapacityOfAResultIsInTheBatch(t *testing.T) {
	p := newPod(t, contract.Expand, 3)
	must(t, p.each(3, number+`[ "$n" = 0 ] || flex grown "${n}Gi"`+"\n"+`echo "claim: restart the pod" >>"$FLEX_TERMINATION_LOG"; echo bye >>"$FLEX_TERMINATION_LOG"`).Run())
	got := p.results()
	for n, want := range []contract.Capacity{"", "1Gi", "2Gi"} {
		if r := got[uid(n)]; r.Capacity != want || r.Message != "claim: restart the pod" {
			t.Errorf("claim %d has %+v", n, r)
		}
	}
}

// One PV may be larger than a variable can be.
func TestALargePVIsFoundInTheFile(t *testing.T) {
	p := newPod(t, contract.Provision, 2)
	k := p.serve()
	text, err := os.ReadFile(p.dir + "/pv.json")
	must(t, err)
	p.write("pv.json", strings.Replace(string(text), `"annotations":{`, `"annotations":{"a":"`+strings.Repeat("x", 150<<10)+`",`, 1))
	if code := exitOf(t, p.each(2, `flex pv '`+nfs+`'`).Run()); code != 0 || len(k.pvs["pvc-"+uid(0)]) < 150<<10 || len(k.pvs) != 2 {
		t.Errorf("exit %d, %d PVs: %.500s", code, len(k.pvs), &p.says)
	}
}

// waitFor waits until there are so many files.
func (p *pod) waitFor(pattern string, n int) {
	p.t.Helper()
	for range 600 {
		if found, _ := filepath.Glob(p.dir + "/" + pattern); len(found) >= n {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	p.t.Fatalf("there are not %d files %s", n, pattern)
}

// ends has claim 0 end at once, and the others when they are asked to.
const ends = number + `[ "$n" != 0 ] || exit 0
trap 'echo stopping; sleep 0.3; touch "$FLEX_TEST_DIR/stopped.$n"; [ "$n" = 1 ] && exit 0; exit 65' TERM
touch "$FLEX_TEST_DIR/started.$n"
while :; do sleep 0.1; done
`

func TestAStopReachesTheCommandsAndIsWaitedFor(t *testing.T) {
	p := newPod(t, contract.Provision, 6)
	cmd := p.each(4, ends)
	must(t, cmd.Start())
	p.waitFor("started.*", 4)
	must(t, cmd.Process.Signal(syscall.SIGTERM))
	code := exitOf(t, cmd.Wait())
	p.waitFor("stopped.*", 4)
	got := p.results()
	// A request that was stopped has no result: the dispatcher sees the pod's end, and does not
	// count the attempt.
	if code != contract.ExitTempFail || len(got) != 2 || got[uid(0)].Code == nil || got[uid(1)].Code == nil {
		t.Errorf("exit %d: %s: %s", code, p.message(), &p.says)
	}
}

// What has ended before the run is killed, such as for want of memory, has its result.
func TestAKillLosesNoResultOfWhatHasEnded(t *testing.T) {
	p := newPod(t, contract.Provision, 6)
	cmd := p.each(4, strings.Replace(ends, `exit 0`, `flex refuse "too large"`, 1))
	must(t, cmd.Start())
	p.waitFor("started.*", 4) // so claim 0 has ended, and is reported before the next begins
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	got := p.results()
	if r := got[uid(0)]; len(got) != 1 || r.Code == nil || *r.Code != contract.ExitBadRequest || r.Message != "claim: too large" {
		t.Errorf("the message is %s", p.message())
	}
	stop := exec.CommandContext(t.Context(), "bash", "-c", `for f in /proc/[0-9]*/environ; do if grep -qazF "FLEX_TEST_DIR=$0" "$f" 2>/dev/null; then p=${f#/proc/}; kill -9 "${p%/environ}"; fi; done; exit 0`, p.dir)
	must(t, stop.Run())
}

// What a command leaves in the background has its output, but does not hold up the others.
func TestWhatRunsOnInTheBackgroundIsNotWaitedFor(t *testing.T) {
	p := newPod(t, contract.Provision, 2)
	start := time.Now()
	code := exitOf(t, p.each(2, `sleep 30 & echo started`).Run())
	if took := time.Since(start); code != 0 || took > 20*time.Second || len(p.results()) != 2 {
		t.Errorf("exit %d after %s: %s", code, took, &p.says)
	}
}

func TestACommandThatCannotBeStarted(t *testing.T) {
	p := newPod(t, contract.Provision, 2)
	cmd := p.each(2, "")
	p.write("provision", "\x7fELF of another machine")
	code := exitOf(t, cmd.Run())
	for n := range 2 {
		if r := p.results()[uid(n)]; code != contract.ExitTempFail || r.Code == nil || *r.Code != contract.ExitTempFail || !strings.Contains(r.Message, "cannot be started") {
			t.Errorf("exit %d: %+v: %s", code, r, &p.says)
		}
	}
}

func TestAWrongUseOfEach(t *testing.T) {
	for name, test := range map[string]struct {
		arguments []string
		change    func(p *pod)
		code      int
		says      string
	}{
		"nothing":      {nil, nil, 64, "a number and a command are required"},
		"no command":   {[]string{"8"}, nil, 64, "a number and a command are required"},
		"no number":    {[]string{"true", "provision"}, nil, 64, "must be a positive number"},
		"zero":         {[]string{"0", "true"}, nil, 64, "must be a positive number"},
		"no such":      {[]string{"1", "/no/such"}, nil, 64, "the command cannot be run"},
		"each in each": {[]string{"1", "true"}, func(p *pod) { p.env["FLEX_PV"] = "{}" }, 64, `[ -n "${FLEX_CLAIM_UID:-}" ] || exec flex each`},
		"no file":      {[]string{"1", "true"}, func(p *pod) { must(p.t, os.Remove(p.dir+"/request.json")) }, 75, "no such file"},
		"no PVs":       {[]string{"1", "true"}, func(p *pod) { must(p.t, os.Remove(p.dir+"/pv.json")) }, 75, "no such file"},
		"another file": {[]string{"1", "true"}, func(p *pod) { p.write("request.json", "{}") }, 64, "the version is"},
		"a later version": {[]string{"1", "true"}, func(p *pod) {
			p.write("request.json", `{"version":"flex-provisioner.io/v2","verb":"provision","requests":[{"uid":"u1"},{"uid":"u2"}]}`)
		}, 64, `the version is "flex-provisioner.io/v2", and this image supports "flex-provisioner.io/v1"`},
		"damaged PVs":    {[]string{"1", "true"}, func(p *pod) { p.write("pv.json", "{") }, 75, "unexpected end"},
		"one PV for two": {[]string{"1", "true"}, func(p *pod) { p.write("pv.json", skeletonOf(uid(0))) }, 75, "has 2 requests"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, contract.Provision, 2)
			if test.change != nil {
				test.change(p)
			}
			if code := p.flex(append([]string{"each"}, test.arguments...)...); code != test.code || !strings.Contains(p.says.String(), test.says) || p.message() != "" {
				t.Errorf("exit %d: %s: %s", code, &p.says, p.message())
			}
		})
	}
}

// Results that cannot be written would have all requests tried again: the run says so.
func TestResultsThatCannotBeWritten(t *testing.T) {
	p := newPod(t, contract.Provision, 2)
	p.env["FLEX_TERMINATION_LOG"] = p.dir + "/no/such"
	var out bytes.Buffer
	cmd := p.each(2, "true")
	cmd.Stdout, cmd.Stderr = &out, &out
	if code := exitOf(t, cmd.Run()); code != contract.ExitTempFail || !strings.Contains(out.String(), "the results cannot be written") {
		t.Errorf("exit %d: %s", code, &out)
	}
}
