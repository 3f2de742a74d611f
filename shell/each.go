package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

var eachVerb = verb{
	name: "each", arguments: "N COMMAND [ARGUMENT...]",
	does: "run COMMAND for each request of a batch as for that request alone, at most N at a time, and write the results",
	run:  each,
}

// longestText is the longest variable that is set. Linux starts no program with one of 128 KiB
// (MAX_ARG_STRLEN).
const longestText = 100 << 10

// each runs a command once for each request. With one request the run is already what the command
// expects, so the command takes the place of this program.
func each(in *container, arguments []string) error {
	most, err := parallel(arguments)
	if err != nil {
		return err
	}
	path, err := exec.LookPath(arguments[1])
	if err != nil {
		return misused("the command cannot be run: %w", err)
	}
	requests, pvs, err := in.batch()
	if err != nil {
		return err
	}
	b := &batch{
		in: in, path: path, command: arguments[1:], missing: missing(path),
		requests: requests, pvs: pvs, results: make([]*contract.Result, len(requests)),
	}
	if len(requests) == 1 {
		if b.missing != "" {
			return misconfigured.end(in, []string{b.missing})
		}
		return syscall.Exec(path, b.command, append(os.Environ(), b.pvVariable(0)...)) //nolint:gosec // it is the script's own command
	}
	return b.run(most)
}

func parallel(arguments []string) (int, error) {
	if len(arguments) < 2 {
		return 0, misused("a number and a command are required: flex each N COMMAND")
	}
	n, err := strconv.Atoi(arguments[0])
	if err != nil || n < 1 {
		return 0, misused("%q must be a positive number: how many commands run at a time", arguments[0])
	}
	return n, nil
}

// batch returns the requests of this run and the PV of each, as JSON.
func (in *container) batch() ([]contract.Request, []json.RawMessage, error) {
	if in.property(contract.PropPV) != "" {
		return nil, nil, misused("this is the command of another flex each. " +
			"Remedy: remove it from a script that a ConfigMap has as text: flex runs that for each request. " +
			`In an image run it only if FLEX_CLAIM_UID is empty: [ -n "${FLEX_CLAIM_UID:-}" ] || exec flex each 8 "$0" "$@"`)
	}
	content, err := os.ReadFile(in.requests)
	if err != nil {
		return nil, nil, err
	}
	all, err := contract.DecodeRequests(content)
	if err != nil { // a later version of the contract, for one: no command has run
		return nil, nil, misused("%w", err)
	}
	if content, err = os.ReadFile(in.pv); err != nil {
		return nil, nil, err
	}
	var pvs struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(content, &pvs); err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", in.pv, err)
	}
	if pvs.Kind != "List" {
		pvs.Items = []json.RawMessage{content}
	}
	if len(all.Items) == 0 || len(pvs.Items) != len(all.Items) {
		return nil, nil, fmt.Errorf("%s has %d requests, and %s %d PersistentVolumes", in.requests, len(all.Items), in.pv, len(pvs.Items))
	}
	return all.Items, pvs.Items, nil
}

// batch is the requests of a run, and what became of them.
type batch struct {
	in       *container
	path     string   // of the command
	command  []string // with its arguments
	requests []contract.Request
	pvs      []json.RawMessage
	missing  string // why no command can be started, if that is known
	dir      string // with the termination message of each command, and its directory

	mu       sync.Mutex // over what follows, and over the output
	results  []*contract.Result
	reported error
}

// run runs the commands, and returns how they ended.
func (b *batch) run(most int) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := b.paths(); err != nil {
		return err
	}
	defer os.Remove(b.dir) // what a request has left stays: a file system may be mounted there
	next := make(chan int)
	var workers sync.WaitGroup
	for range min(most, len(b.requests)) {
		workers.Go(func() {
			for i := range next {
				b.report(i, b.serve(ctx, i))
			}
		})
	}
	for i := range b.requests {
		next <- i
	}
	close(next)
	workers.Wait()
	if b.reported != nil {
		return fmt.Errorf("the results cannot be written: %w", b.reported)
	}
	return b.verdict()
}

// paths makes the directory of the batch. A command has a working directory of its own, where a
// path that begins in this program's is another one.
func (b *batch) paths() (err error) {
	if b.path, err = filepath.Abs(b.path); err != nil {
		return err
	}
	if b.dir, err = os.MkdirTemp("", "flex-each-"); err != nil {
		return err
	}
	b.dir, err = filepath.Abs(b.dir)
	return err
}

// report writes the results that there are. Each is written at once: they count when the run is
// killed, too.
func (b *batch) report(i int, result *contract.Result) {
	if result == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.results[i] = result
	var all []contract.Result
	for _, r := range b.results {
		if r != nil {
			all = append(all, *r)
		}
	}
	// A message of the largest possible length would be taken for one that is cut off.
	b.reported = b.in.setMessage(contract.EncodeResults(all, contract.MaxMessage-1))
}

// verdict returns the code that all failures have in common, or that the run is to be tried again:
// what became of each request is in its result.
func (b *batch) verdict() error {
	codes := map[int]int{}
	for _, r := range b.results {
		switch {
		case r == nil:
			codes[contract.ExitTempFail]++
		case !r.IsDone():
			codes[int(*r.Code)]++
		}
	}
	failed := 0
	code := contract.ExitTempFail
	for one, n := range codes {
		failed += n
		if len(codes) == 1 {
			code = one
		}
	}
	if failed == 0 {
		return nil
	}
	fmt.Fprintf(b.in.log, "flex each: %d of %d requests are not done\n", failed, len(b.requests))
	return ended(code)
}

// environment returns the environment that a run for one request alone has. What all requests share
// is in this program's own.
func (b *batch) environment(i int, home, message string) []string {
	own := b.requests[i].OwnVariables()
	env := slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.ContainsFunc(own, func(v contract.Variable) bool { return contract.EnvName(v.Property) == name })
	})
	for _, v := range own {
		env = append(env, contract.EnvName(v.Property)+"="+v.Value)
	}
	env = append(env, "HOME="+home, "TMPDIR="+home, "PWD="+home)
	env = append(env, contract.EnvName(contract.PropTerminationLog)+"="+message)
	return append(env, b.pvVariable(i)...)
}

// pvVariable returns the variable with a PV. One that is too large is not set: flex pv finds the PV
// in pv.json by its name, too.
func (b *batch) pvVariable(i int) []string {
	if len(b.pvs[i]) > longestText {
		return nil
	}
	return []string{contract.EnvName(contract.PropPV) + "=" + strings.TrimSpace(string(b.pvs[i]))}
}
