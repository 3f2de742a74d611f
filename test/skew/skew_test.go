// Package skew_test lets the dispatcher of today run on the objects that an earlier version has
// left, and on those that a later one has, after a rollback.
//
// A folder of testdata holds what one version writes: a file for each story of a claim, with all
// that was written from the beginning of a cluster to its end. Each beginning of a story is a state
// in which an upgrade may find a cluster. From each, the dispatcher of today starts, alone, and has
// to keep every promise: each claim is bound or an event says why not, nothing is done twice, no
// volume is lost, and nothing is left when all claims are deleted.
//
// A write is stored as a patch of the object before it, and a new object as one of the object of its
// kind in bases.yaml: the first of the first story.
//
// make golden writes the folder of the version that the changelog calls unreleased. Those of
// released versions are never written again. hack/skew.sh runs an earlier version on what this one
// writes.
package skew_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/test/invariants"
)

var (
	update = flag.Bool("update", false, "write the stories of the version that is not released yet")
	write  = flag.String("write", "", "write the stories of this version into a directory")
	states = flag.String("states", "testdata", "a directory with a folder of stories for each version")
)

// TestMain takes away what client-go does with the errors of watches: it waits between two of them,
// by clocks of different worlds.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)         // a world is small, and thrown away as a whole
	utilruntime.ErrorHandlers = nil //nolint:reassign // the only way to be rid of its backoff
	os.Exit(m.Run())
}

// unreleased is the version at the top of the changelog, or nothing if that is released.
func unreleased(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	first := regexp.MustCompile(`(?m)^## (v\S+)(.*)$`).FindStringSubmatch(string(text))
	if first == nil {
		t.Fatal("CHANGELOG.md has no heading with a version")
	}
	if !strings.Contains(first[2], "unreleased") {
		return ""
	}
	return first[1]
}

// TestEachStateThatAVersionLeavesIsServed starts the dispatcher of today in every state of every
// story. In some it starts after two hours: an upgrade may take that long.
func TestEachStateThatAVersionLeavesIsServed(t *testing.T) {
	t.Parallel()
	files := storyFiles(t, *states)
	for _, path := range files {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+strings.TrimSuffix(filepath.Base(path), ".yaml"), func(t *testing.T) {
			t.Parallel()
			past := readPast(t, path)
			if *states != "testdata" && !past.isKnown() {
				t.Skipf("%s is a story of a later version", past.Story)
			}
			n := 0
			for _, writes := range past.states() {
				n++
				serveFrom(t, past, writes, 0)
				if n%slowEvery == 0 {
					serveFrom(t, past, writes, 2*time.Hour)
				}
				if t.Failed() {
					return // one state is enough to look at
				}
			}
			t.Logf("served from %d states", n)
		})
	}
}

// slowEvery is of how many states one is also served after a long time without a dispatcher.
const slowEvery = 4

// storyFiles returns the files of all versions in a directory. Each story of this version must be
// among them: one that a later version has under another name would be left out on the way back, and
// that version would seem to be served.
func storyFiles(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(file string) bool { return filepath.Base(file) == basesFile })
	for _, s := range stories {
		if !slices.ContainsFunc(files, func(file string) bool { return filepath.Base(file) == s.name+".yaml" }) {
			t.Fatalf("the story %s is not in %s", s.name, dir)
		}
	}
	return files
}

// serveFrom starts a dispatcher in the state of a story after a number of writes, lets it come to
// rest, and checks the promises.
func serveFrom(t fakecluster.T, past *past, writes int, downtime time.Duration) {
	t.Helper()
	inWorld(t, past.story(t), func(w *world) {
		w.resume(past, writes)
		time.Sleep(downtime)
		w.waited = downtime > 0
		w.Start()
		w.Until("every claim is served, or says why it is not", restWithin, w.isAtRest)
		w.checkRest()
		w.endAll()
		invariants.Check(w.Cluster)
		if w.T.Failed() {
			w.T.Logf("%s after %d writes, the last one: %s\n%s", past.Story, writes, past.Changes[writes-1].title(), w.Story())
		}
	})
}
