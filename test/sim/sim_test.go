// Package sim_test simulates a cluster with people in it: users and administrators do what they do,
// components fail, dispatchers die, and watches lag. A seed decides what happens next, so that what
// a seed has found happens again. Some classes are served by the Cinder image's own code, each
// request of which is a step, too. What is checked is that nothing is lost, that no more is at work
// than allowed, that everything comes to rest once people and faults have ended, and, of some
// worlds, that every finalizer goes when nothing is needed any more.
//
// Each act or fault that is added makes the world of every seed another one. So there is no list of
// seeds that have found something: what one has found stays as a scenario in dispatcher/controller,
// or as a test of the image's package, with the seed in the message of its commit.
package sim_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
)

// usual is how many seeds are simulated each time. SIM_SEEDS asks for more of them.
const usual = 45

const (
	// fresh: one of so many seeds was never tried.
	fresh = 6
	// repeated is how many seeds happen twice, at least. Where more are asked for, one of a hundred
	// does.
	repeated = 5
	hundred  = 100
)

func TestSeedsComeToRestAndLoseNothing(t *testing.T) {
	t.Parallel()
	if text := os.Getenv("SIM_SEED"); text != "" {
		simulateNamed(t, text)
		return
	}
	n, more := seeds(t)
	for seed := range n {
		simulateOne(t, seed)
	}
	for range more {
		simulateOne(t, rand.Uint64())
	}
}

// TestSeedsHappenTheSameWayAgain compares whole stories, and each object as it was written: what a
// seed has found can only be looked at if it happens again.
func TestSeedsHappenTheSameWayAgain(t *testing.T) {
	t.Parallel()
	if os.Getenv("SIM_SEED") != "" {
		return // one seed is asked for, with its story
	}
	n, _ := seeds(t)
	for seed := range max(repeated, n/hundred) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			first, again := written(simulate(t, seed)), written(simulate(t, seed))
			if first != again {
				t.Errorf("the stories differ from here on:\n%s", firstDifference(first, again))
			}
		})
	}
}

// written returns the story of a world, and after it every object as it was written.
func written(w *world) string {
	var out strings.Builder
	out.WriteString(w.story.String())
	for _, change := range w.Server.History() {
		text, err := json.Marshal(change.Now)
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(&out, "%s: %s %s %s: %s\n", change.By, change.Verb, change.Resource, change.Name, text)
	}
	return out.String()
}

// firstDifference returns the first line in which two texts differ, of both, and the one before.
func firstDifference(a, b string) string {
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return strings.Join([]string{as[max(i-1, 0)], as[i], bs[i]}, "\n")
		}
	}
	return "one ends before the other"
}

// seeds returns how many seeds are simulated, from 0, and how many more by chance.
func seeds(t *testing.T) (n, more uint64) {
	t.Helper()
	all := uint64(usual)
	if text := os.Getenv("SIM_SEEDS"); text != "" {
		var err error
		if all, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	return all - all/fresh, all / fresh
}

// simulateNamed simulates the seed that SIM_SEED names, and prints its story.
func simulateNamed(t *testing.T, text string) {
	t.Helper()
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(simulate(t, seed).story.String())
}

func simulateOne(t *testing.T, seed uint64) {
	t.Helper()
	t.Run(fmt.Sprint(seed), func(t *testing.T) {
		t.Parallel()
		happened.add(simulate(t, seed).counts)
	})
}
