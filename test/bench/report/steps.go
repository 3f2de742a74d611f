package report

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The steps of a claim that comes alone, from its creation until it is bound and from its deletion
// until its PV no longer exists. A provisioner need not have all of them. The run that has
// provisioned may end late: its pod is the earlier one of a delete.
const (
	ClaimGone        = "claim gone"
	Released         = "PV released"
	JobCreated       = "Job created"
	PodCreated       = "pod created"
	EarlierPodEnded  = "earlier pod ended"
	GateOpened       = "gate opened"
	PodScheduled     = "pod scheduled"
	ContainerStarted = "container started"
	PVWritten        = "PV written"
	ContainerEnded   = "container ended"
	Recorded         = "outcome recorded"
	Bound            = "bound"
	PVGone           = "PV gone"
)

// inOrder are all steps, in their order.
var inOrder = []string{
	ClaimGone, Released, JobCreated, PodCreated, EarlierPodEnded, GateOpened, PodScheduled,
	ContainerStarted, PVWritten, ContainerEnded, Recorded, Bound, PVGone,
}

// Step is one step of all claims that had it.
type Step struct {
	Name string `json:"name"`
	// At are seconds since the claim was created or deleted. Took are those of them that had not
	// passed when all steps before were done: together they are the claim's whole time.
	At   []float64 `json:"at"`
	Took []float64 `json:"took"`
}

// Trace collects when one claim had which step. It may be used by several goroutines.
type Trace struct {
	mu    sync.Mutex
	since time.Time
	at    map[string]time.Time
}

// NewTrace returns one for a claim that is created or deleted now.
func NewTrace(now time.Time) *Trace {
	return &Trace{since: now, at: map[string]time.Time{}}
}

// Note records a step. Only the first time counts.
func (t *Trace) Note(step string, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.at[step]; !known {
		t.at[step] = at
	}
}

// Steps returns what was collected, in the order of the steps.
func (t *Trace) Steps() []Step {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Step
	last := 0.0
	for _, name := range inOrder {
		if at, had := t.at[name]; had {
			after := at.Sub(t.since).Seconds()
			out = append(out, Step{Name: name, At: []float64{after}, Took: []float64{max(0, after-last)}})
			last = max(last, after)
		}
	}
	return out
}

// addSteps returns the steps of some claims and those of another one.
func addSteps(steps, next []Step) []Step {
	var out []Step
	for _, name := range inOrder {
		sum := Step{Name: name}
		for _, one := range slices.Concat(steps, next) {
			if one.Name == name {
				sum.At, sum.Took = append(sum.At, one.At...), append(sum.Took, one.Took...)
			}
		}
		if len(sum.At) > 0 {
			out = append(out, sum)
		}
	}
	return out
}

// median returns the median of some numbers, 0 if there are none.
func median(all []float64) float64 {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// steps is a table of each phase whose claims came alone.
func steps(r Results) string {
	var out strings.Builder
	for _, one := range r {
		for _, of := range []struct {
			verb  string
			phase *Phase
		}{{"provision", one.Provision}, {"delete", one.Delete}} {
			if of.phase == nil || len(of.phase.Steps) == 0 {
				continue
			}
			rows := [][]string{{"step", "claims", "took p50 ms", "after p50 ms"}}
			for _, step := range of.phase.Steps {
				rows = append(rows, []string{
					step.Name, strconv.Itoa(len(step.At)), number(1000 * median(step.Took)),
					number(1000 * median(step.At)),
				})
			}
			out.WriteString(table("Time by step: "+one.name()+" "+of.verb, rows))
		}
	}
	return out.String()
}
