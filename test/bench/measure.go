package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/flex-provisioner/flex-provisioner/test/bench/audit"
	"github.com/flex-provisioner/flex-provisioner/test/bench/process"
	"github.com/flex-provisioner/flex-provisioner/test/bench/report"
)

// creators is how many claims are created or deleted at a time.
const creators = 32

// refill is how long the limiters of kube-controller-manager take until they allow their whole
// burst again.
const refill = 3 * time.Second

// bench measures one cell.
type bench struct {
	settings
	cluster *cluster
	subject *subject
	watcher *watcher
	// tracer is nil where claims come in a burst.
	tracer *tracer
}

// measure measures a cell in a cluster that has just been started. With an error, it returns what
// was measured until then.
func measure(ctx context.Context, s settings) (report.Result, error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	result := report.Result{Column: s.cell.Column, Row: s.cell.Row.Name, Claims: s.cell.Claims}
	b, err := newBench(ctx, s)
	if err != nil {
		return result, err
	}
	defer b.subject.end(stop)
	if err := b.warmUp(ctx); err != nil {
		return result, fmt.Errorf("warm up: %w", err)
	}
	if result.Provision, err = b.phase(ctx, "provision", b.watcher.provisioned, b.subject.create); err != nil {
		return result, fmt.Errorf("provision: %w", err)
	}
	if s.cell.Row.Deletes() {
		result.Delete, err = b.phase(ctx, "delete", b.watcher.deleted, b.subject.remove)
		if err != nil {
			return result, fmt.Errorf("delete: %w", err)
		}
	}
	return result, nil
}

// newBench makes the nodes and the class, starts the provisioner, and watches.
func newBench(ctx context.Context, s settings) (*bench, error) {
	c, err := connect(s.kubeconfig, s.temp)
	if err != nil {
		return nil, err
	}
	b := &bench{settings: s, cluster: c}
	if err := c.prepare(ctx); err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	if err := c.makeNodes(ctx); err != nil {
		return nil, fmt.Errorf("make the nodes: %w", err)
	}
	if err := startPlayer(ctx, c); err != nil {
		return nil, fmt.Errorf("start to play the nodes: %w", err)
	}
	if b.subject, err = newSubject(ctx, s, c); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.cell.Row.Name, err)
	}
	b.watcher, err = startWatcher(ctx, c.client)
	return b, err
}

func names(prefix string, n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("%s-%04d", prefix, i))
	}
	return out
}

// warmUp serves one claim, so that the provisioner leads, has filled its caches and knows the
// class. What it made is deleted again.
func (b *bench) warmUp(ctx context.Context) error {
	first := []string{"first"}
	if _, err := b.burst(ctx, b.watcher.provisioned, b.subject.create, first); err != nil {
		return err
	}
	if b.cell.Row.Deletes() {
		if _, err := b.burst(ctx, b.watcher.deleted, b.subject.remove, first); err != nil {
			return err
		}
	}
	_, err := b.quiet(ctx, time.Now())
	return err
}

// phase measures a burst of all claims, with what was asked of the API server and used until all
// was quiet again.
func (b *bench) phase(ctx context.Context, name string, watch func(*report.Timeline), do func(context.Context, string) error) (*report.Phase, error) {
	time.Sleep(refill)
	before, err := process.Samples(b.state, b.subject.programs)
	if err != nil {
		return nil, err
	}
	from := time.Now()
	profile := b.startProfile(ctx, name)
	phase, err := b.burst(ctx, watch, do, names("claim", b.cell.Claims))
	if err != nil {
		return phase, err
	}
	if err := <-profile; err != nil {
		return phase, fmt.Errorf("profile the API server: %w", err)
	}
	counts, err := b.quiet(ctx, from)
	if err != nil {
		return phase, err
	}
	after, err := process.Samples(b.state, b.subject.programs)
	phase.Requests, phase.Processes = counts.Sorted(), process.Since(before, after)
	return phase, err
}

// burst does something with all claims at once, and waits until all are done.
func (b *bench) burst(ctx context.Context, watch func(*report.Timeline), do func(context.Context, string) error, claims []string) (*report.Phase, error) {
	line := report.NewTimeline(len(claims))
	watch(line)
	if err := atOnce(claims, func(claim string) error {
		line.Asked(claim, time.Now())
		return do(ctx, claim)
	}); err != nil {
		return line.Phase(), err
	}
	alive := time.NewTicker(time.Second)
	defer alive.Stop()
	for patience := time.After(b.patience); ; {
		select {
		case <-line.Complete():
			return line.Phase(), nil
		case <-alive.C:
			if err := process.Running(b.subject.programs); err != nil {
				return line.Phase(), err
			}
		case <-patience:
			return line.Phase(), fmt.Errorf("%d of %d claims were not done after %v", line.Left(), len(claims), b.patience)
		case <-ctx.Done():
			return line.Phase(), ctx.Err()
		}
	}
}

// atOnce does something with each claim in many goroutines, and returns the first error.
func atOnce(claims []string, do func(string) error) error {
	work := make(chan string)
	failed := make(chan error, len(claims))
	var workers sync.WaitGroup
	for range creators {
		workers.Go(func() {
			for claim := range work {
				if err := do(claim); err != nil {
					failed <- fmt.Errorf("%s: %w", claim, err)
				}
			}
		})
	}
	for _, claim := range claims {
		work <- claim
	}
	close(work)
	workers.Wait()
	close(failed)
	return <-failed // nil if there is none
}

// How long hardly anything may be asked for until all is quiet, and when it is measured anyway. The
// API server asks itself now and then.
const (
	quietFor  = 2 * time.Second
	quietMost = 90 * time.Second
	hardlyAny = 5
)

// quiet waits until no more requests come, and returns those since a time. With the stock limits,
// events come long after the claims are done.
func (b *bench) quiet(ctx context.Context, from time.Time) (audit.Counts, error) {
	last, end := -hardlyAny, time.Now().Add(quietMost)
	for {
		counts, err := b.requests(from)
		if err != nil {
			return counts, err
		}
		n := total(counts)
		if n-last < hardlyAny || time.Now().After(end) {
			return counts, nil
		}
		last = n
		select {
		case <-time.After(quietFor):
		case <-ctx.Done():
			return counts, ctx.Err()
		}
	}
}

func total(counts audit.Counts) int {
	sum := 0
	for _, c := range counts.Sorted() {
		sum += c.N
	}
	return sum
}

// requests reads the audit log, of which the API server may have put parts aside.
func (b *bench) requests(from time.Time) (audit.Counts, error) {
	files, err := filepath.Glob(filepath.Join(b.state, "audit", "audit*.log"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("there is no audit log in %s: %w", b.state, err)
	}
	counts := audit.Counts{}
	for _, file := range slices.Sorted(slices.Values(files)) {
		if err := readLog(file, counts, from); err != nil {
			return counts, err
		}
	}
	return counts, nil
}

func readLog(file string, counts audit.Counts, from time.Time) error {
	info, err := os.Stat(file)
	if err != nil || info.ModTime().Before(from) {
		return err
	}
	log, err := os.Open(file)
	if err != nil {
		return err
	}
	defer log.Close() // only read
	return counts.Read(log, from, time.Now())
}
