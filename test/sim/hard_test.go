package sim_test

import (
	"cmp"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// hardWorld is a small world about one thing that the dispatcher did not survive when the world was
// written. Its seeds find what is known to be left, and nothing else.
type hardWorld struct {
	name string
	spec spec
	// faults are what seeds find, each a part of what the law says that is broken.
	faults []string
}

// How many seeds a hard world has at most, from 0, and, unless SIM_SEEDS says how many seeds there
// are, one in which nothing is wrong any more.
const (
	seedsOfAHardWorld = 40
	fewSeeds          = 5

	actsOfAHardWorld   = 14
	claimsOfAHardWorld = 4
)

// hardClasses are classes of hard worlds only.
var hardClasses = []class{
	{name: "onyx", keys: []string{"max-parallel", "1", "timeout", "10m"}},
	{name: "agate", keys: []string{"max-parallel", "2", "timeout", "10m", "verbs", allVerbs}},
	{name: "opal", keys: []string{"timeout", "10m", "data-sources", contract.SourceClaim}},
	{name: "quartz", policy: corev1.PersistentVolumeReclaimRetain, keys: []string{"timeout", "10m", "verbs", "provision"}},
	{name: "jade", changes: []func(*storagev1.StorageClass){ofOther}, keys: []string{"plugin-name", otherProvisioner}},
	{name: "pearl", keys: []string{"timeout", "10m"}},
}

// otherProvisioner is the name of a second dispatcher, which has a lease of its own.
const otherProvisioner = "other.example.com"

func ofOther(class *storagev1.StorageClass) { class.Provisioner = otherProvisioner }

func hardClass(names ...string) []class {
	return slices.DeleteFunc(slices.Clone(hardClasses), func(c class) bool { return !slices.Contains(names, c.name) })
}

// provisioner returns the name under which a dispatcher provisions.
func (w *world) provisioner(p *fakecluster.Process) string {
	if p.Number%2 == 0 && w.hasOther() {
		return otherProvisioner
	}
	return contract.ProvisionerName
}

// hasOther reports whether there is a second dispatcher with another name.
func (w *world) hasOther() bool {
	return slices.ContainsFunc(w.spec.classes, func(c class) bool { return c.name == "jade" })
}

// The acts of hard worlds.
var (
	createsAndDeletes = []act{users[0], users[0], users[2]}
	forces            = []act{users[7]}
	grows             = []act{users[3]}
	forcesOnLost      = []act{{"a node is cut off, and a pod there deleted by force", (*world).forceOnLost}}
	vanishesPods      = []act{{"an administrator strips a pod and deletes it by force", func(w *world) string {
		return oneOf(w, isBegun, func(pod *corev1.Pod) { fakecluster.Vanish(w, pod) })
	}}}
	vanishesJobs = []act{{"an administrator strips a Job and deletes it", func(w *world) string {
		return oneOf(w, w.isOnSilentNode, func(job *batchv1.Job) { fakecluster.Vanish(w, job) })
	}}}
	cutsOff = []act{
		{"a node is cut off", (*world).cutOff},
		{"a node is there again", (*world).reconnect},
	}
	byHand = []act{
		{"an administrator writes a PV by hand", (*world).writeByHand},
		{"an administrator deletes a PV that was written by hand", (*world).deleteByHand},
	}
	clonesOf = []act{
		{"a user asks for a clone", (*world).askForClone},
		{"a user replaces the source of a clone", (*world).replaceSource},
		{"a user deletes a claim that is copied", (*world).deleteSource},
	}
	losesAnswers = []act{
		{"answers to writes are lost", func(w *world) string {
			w.Server.LoseAnswers(func(string, fakecluster.Object) bool { return !w.calm && w.rand.IntN(3) == 0 })
			return "one of three"
		}},
		{"all answers arrive", func(w *world) string { w.Server.LoseAnswers(nil); return "all" }},
		dispatcherFaults[0],
		{"an administrator starts a dispatcher", func(w *world) string {
			if len(w.Processes()) > 0 {
				return ""
			}
			return fmt.Sprint("number ", w.Start().Number)
		}},
	}
	unstartable = []act{
		{"containers cannot be started", func(w *world) string { return w.setStart(startFails) }},
		{"kubelets reject pods", func(w *world) string { return w.setStart(rejected) }},
		{"containers can be started", func(w *world) string { return w.setStart("") }},
	}
)

// hardWorlds are the worlds that the dispatcher does not survive yet, and what is wrong there.
func hardWorlds() []hardWorld {
	return []hardWorld{
		{"vanished pods", spec{
			classes: hardClass("agate"), people: slices.Concat(createsAndDeletes, vanishesPods, vanishesPods), faults: cutsOff,
			begins: func(w *world) { w.Worlds.ReplacesVanishedPods = true },
		}, nil},
		{"forced pods", spec{
			classes: hardClass("agate"), people: slices.Concat(createsAndDeletes, forces, grows, forcesOnLost, forcesOnLost), faults: cutsOff[1:],
		}, nil},
		{"pods without Jobs", spec{
			classes: hardClass("onyx"), people: slices.Concat(createsAndDeletes, vanishesJobs, vanishesJobs, forces), faults: cutsOff,
		}, nil},
		{"PVs by hand", spec{
			classes: hardClass("pearl"), people: slices.Concat(createsAndDeletes, byHand, byHand), faults: cutsOff[1:],
		}, []string{"was retained"}}, // a PV that comes and goes while no leader looks
		{"clones", spec{
			classes: hardClass("opal"), people: slices.Concat(createsAndDeletes, clonesOf, clonesOf), faults: cutsOff[1:],
		}, nil},
		{"lost answers", spec{
			classes: hardClass("quartz"), people: createsAndDeletes, faults: losesAnswers,
			begins: func(w *world) { w.Worlds.LosesEvents = true },
		}, []string{"VolumeLeft", noEvent}}, // no dispatcher runs for an hour: the event of the last one is lost with it, or none says why a claim waits
		{"two provisioners", spec{
			classes: hardClass("pearl", "jade"), people: createsAndDeletes, faults: cutsOff[1:],
			begins: func(w *world) { w.Start() },
		}, nil},
		{"sidecars", spec{
			classes: hardClass("onyx"), people: createsAndDeletes, faults: cutsOff[1:], claims: 12,
			begins: func(w *world) { w.setImage(func(image *fakecluster.Image) { image.Sidecar = true }) },
		}, nil},
		{"containers that do not start", spec{
			classes: hardClass("pearl"), people: slices.Concat(createsAndDeletes, []act{users[8]}), faults: unstartable,
			begins: func(w *world) { w.Worlds.MarksUnknown = true },
		}, nil},
	}
}

// noEvent is what is wrong if a claim waits in silence.
const noEvent = "no event of the last"

// TestHardWorldsFindWhatIsKnown stops with a world when all its faults are found, unless SIM_SEEDS
// says how many seeds there are.
func TestHardWorldsFindWhatIsKnown(t *testing.T) {
	t.Parallel()
	for _, h := range hardWorlds() {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			h.spec.isHard, h.spec.acts, h.spec.claims = true, actsOfAHardWorld, cmp.Or(h.spec.claims, claimsOfAHardWorld)
			found := map[string]bool{}
			for seed := range seedsOf(t, &h) {
				h.look(t, seed, found)
				if len(h.faults) > 0 && h.hasAll(found) && os.Getenv("SIM_SEEDS") == "" {
					break
				}
			}
			if !h.hasAll(found) && os.Getenv("SIM_SEED") == "" {
				t.Errorf("of %q seeds find only %v: take off what they do not find", h.faults, found)
			}
		})
	}
}

// seedsOf returns the seeds of a hard world.
func seedsOf(t *testing.T, h *hardWorld) iter.Seq[uint64] {
	t.Helper()
	first, n := uint64(0), uint64(seedsOfAHardWorld)
	switch text := os.Getenv("SIM_SEED"); {
	case text != "":
		one, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		first, n = one, 1
	case len(h.faults) == 0 && os.Getenv("SIM_SEEDS") == "":
		n = fewSeeds
	}
	return func(yield func(uint64) bool) {
		for seed := first; seed < first+n && yield(seed); seed++ {
		}
	}
}

func (h *hardWorld) hasAll(found map[string]bool) bool {
	return !slices.ContainsFunc(h.faults, func(f string) bool { return !found[f] })
}

// look lets one seed happen.
func (h *hardWorld) look(t *testing.T, seed uint64, found map[string]bool) {
	t.Helper()
	said, trace := h.spec.find(t, seed)
	if said == "" {
		return
	}
	matches := func(f string) bool { return regexp.MustCompile(f).MatchString(said) }
	known := slices.IndexFunc(h.faults, matches)
	switch {
	case known >= 0 && !found[h.faults[known]]:
		found[h.faults[known]] = true
		t.Logf("world %q, seed %d: %s\n%s", h.name, seed, said, trace)
	case known < 0:
		t.Errorf("world %q, seed %d finds what is not known: %s\n%s", h.name, seed, said, trace)
	}
}

// witness takes what laws say, and ends the world then.
type witness struct {
	*testing.T
	said string
}

// broken ends a world in which a law is broken.
type broken struct{}

func (t *witness) end(said string) {
	t.said = said
	panic(broken{})
}

// Error is for one law that is broken.
func (t *witness) Error(args ...any) { t.end(fmt.Sprint(args...)) }

// Errorf is for one law that is broken.
func (t *witness) Errorf(format string, args ...any) { t.end(fmt.Sprintf(format, args...)) }

// Fatal is for what does not come to an end.
func (t *witness) Fatal(args ...any) { t.end(fmt.Sprint(args...)) }

// Fatalf is for what does not come to an end.
func (t *witness) Fatalf(format string, args ...any) { t.end(fmt.Sprintf(format, args...)) }

// find lets a seed happen, and returns which law is broken, if any, and what people and faults did.
func (s spec) find(t *testing.T, seed uint64) (said, trace string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		sees := &witness{T: t}
		w := newWorld(sees, &s, rand.NewPCG(seed, 1))
		defer w.Stop()
		defer func() {
			if p := recover(); p != nil && p != any(broken{}) {
				panic(p)
			}
			said, trace = strings.SplitN(sees.said, "\n", 2)[0], strings.Join(w.acted, "\n")
			if os.Getenv("SIM_STORY") != "" && said != "" {
				trace += "\n" + w.story.String()
			}
		}()
		w.live()
	})
	return said, trace
}

// live lets a hard world happen.
func (w *world) live() {
	w.setUp()
	for w.acts < w.spec.acts {
		w.step()
	}
	w.checkForeign()
	w.checkUndone()
	w.checkWaiting()
	w.checkEvents()
	w.heal()
	w.setStart("")
	if w.hasOther() {
		w.Start()
	}
	w.comeToRest()
	w.checkRest()
}
