package controller_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/metrics"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/controller"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/test/logsink"
)

// registry adds what counts in a world only when it is asked: its package keeps each registry for ever
// (newKubeRegistry in k8s.io/component-base/metrics), and with it each world was kept.
type registry struct {
	metrics.KubeRegistry
	later []metrics.StableCollector
}

func newRegistry() *registry { return &registry{KubeRegistry: metrics.NewKubeRegistry()} }

func (r *registry) CustomMustRegister(all ...metrics.StableCollector) {
	r.later = append(r.later, all...)
}

// ServeHTTP answers as /metrics does.
func (r *registry) ServeHTTP(w http.ResponseWriter, asked *http.Request) {
	r.KubeRegistry.CustomMustRegister(r.later...)
	r.later = nil
	metrics.HandlerFor(r.KubeRegistry, metrics.HandlerOpts{}).ServeHTTP(w, asked)
}

// scrape is what /metrics shows of ours: a number by series and labels.
func scrape(t fakecluster.T, from *registry) map[string]float64 {
	t.Helper()
	answer := httptest.NewRecorder()
	from.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	out := map[string]float64{}
	for line := range strings.Lines(answer.Body.String()) {
		at := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || at < 0 || strings.Contains(line, "_bucket{") {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(line[at:]), 64)
		if err != nil {
			t.Fatalf("/metrics has the line %q: %v", line, err)
		}
		out[line[:at]] = n
	}
	return out
}

// mustCount compares all that /metrics shows of some series, which begin with one of the words,
// with what it must show.
func (w *world) mustCount(words []string, want map[string]float64) {
	w.T.Helper()
	got := scrape(w.T, w.metrics)
	for line, n := range got {
		for _, word := range words {
			if m, wanted := want[line]; strings.HasPrefix(line, word) && (!wanted || m != n) {
				w.T.Errorf("/metrics shows %s %v, want %v", line, n, m)
			}
		}
	}
	for line, n := range want {
		if _, shown := got[line]; !shown {
			w.T.Errorf("/metrics does not show %s %v", line, n)
		}
	}
}

// library are the series that dashboards know from other provisioners.
var library = []string{"controller_persistentvolume"}

func TestAVolumesLifeIsCountedUnderTheNamesThatDashboardsKnow(t *testing.T) {
	inWorld(t, func(w *world) {
		deletes := 0
		w.SetUpGold(func(r *fakecluster.Run) fakecluster.Exit {
			if r.Verb == contract.Delete {
				if deletes++; deletes == 1 {
					return fakecluster.Exit{Code: 75}
				}
			}
			return fakecluster.Script(fakecluster.Fails(75, ""))(r)
		})
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.mustCount(library, map[string]float64{
			`controller_persistentvolumeclaim_provision_total{class="gold",source=""}`:                  1,
			`controller_persistentvolumeclaim_provision_failed_total{class="gold",source=""}`:           1,
			`controller_persistentvolumeclaim_provision_duration_seconds_count{class="gold",source=""}`: 1,
			`controller_persistentvolumeclaim_provision_duration_seconds_sum{class="gold",source=""}`:   1,
		})
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("nothing is left", time.Minute, w.Empty)
		got := scrape(w.T, w.metrics)
		for line, want := range map[string]float64{
			`controller_persistentvolume_delete_total{class="gold"}`:                       1,
			`controller_persistentvolume_delete_failed_total{class="gold"}`:                1,
			`controller_persistentvolume_delete_duration_seconds_count{class="gold"}`:      1,
			`controller_persistentvolume_delete_duration_seconds_sum{class="gold"}`:        1,
			`flex_dispatcher_runs_total{class="gold",verb="provision",verdict="TryAgain"}`: 1,
			`flex_dispatcher_runs_total{class="gold",verb="provision",verdict="Done"}`:     1,
			`flex_dispatcher_runs_total{class="gold",verb="delete",verdict="TryAgain"}`:    1,
			`flex_dispatcher_runs_total{class="gold",verb="delete",verdict="Done"}`:        1,
			`flex_dispatcher_attempts_count{class="gold",verb="provision"}`:                1,
			`flex_dispatcher_attempts_sum{class="gold",verb="provision"}`:                  2,
			`flex_dispatcher_attempts_sum{class="gold",verb="delete"}`:                     2,
		} {
			if got[line] != want {
				w.T.Errorf("/metrics shows %s %v, want %v", line, got[line], want)
			}
		}
	})
}

func TestAnUndoIsNoDeletionOfAVolume(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Always(fakecluster.Halfway(75)))
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("it failed", time.Minute, func() bool { return len(w.RunsOf(contract.Provision)) > 0 })
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("nothing is left", time.Hour, w.Empty)
		w.mustCount([]string{"controller_persistentvolume_delete"}, nil)
		w.mustCount([]string{`flex_dispatcher_runs_total{class="gold",verb="undo"`}, map[string]float64{
			`flex_dispatcher_runs_total{class="gold",verb="undo",verdict="Done"}`: 1,
		})
	})
}

func TestACloneIsCountedByItsSource(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "data-sources", "PersistentVolumeClaim")
		w.Start()
		w.CreateClaim("other")
		w.Until("the source is bound", time.Minute, w.IsBound("other"))
		w.CreateClaim("data", copyOf("other"))
		w.Until("the copy is bound", time.Minute, w.IsBound("data"))
		w.mustCount([]string{"controller_persistentvolumeclaim_provision_total"}, map[string]float64{
			`controller_persistentvolumeclaim_provision_total{class="gold",source=""}`:                      1,
			`controller_persistentvolumeclaim_provision_total{class="gold",source="PersistentVolumeClaim"}`: 1,
		})
	})
}

func TestWaitingClaimsAndUnfinishedJobsAreCountedByClass(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "2")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Takes: time.Minute, Does: fakecluster.Works}
		w.NoPodFor["stuck"] = true
		w.Start()
		gauges := []string{"flex_dispatcher_queue", "flex_dispatcher_jobs"}
		w.mustCount(gauges, nil)
		w.CreateClaim("stuck")
		w.failCreate()
		w.Advance(time.Minute)
		w.CreateClaim("one")
		w.Advance(time.Second)
		w.CreateClaim("two")
		w.CreateClaim("three")
		w.Advance(10 * time.Second)
		w.mustCount(gauges, map[string]float64{
			`flex_dispatcher_queue{class="gold",verb="provision"}`:                2,
			`flex_dispatcher_jobs{class="gold",state="running",verb="provision"}`: 1,
			`flex_dispatcher_jobs{class="gold",state="stuck",verb="provision"}`:   1,
		})
		w.Until("the last is bound", time.Hour, w.IsBound("three"))
		w.Advance(time.Minute)
		w.mustCount(gauges, map[string]float64{`flex_dispatcher_jobs{class="gold",state="stuck",verb="provision"}`: 1})
	})
}

// A rule compares the runs that wait with those that end. While the deletes of a class that no longer
// exists waited without its name, FlexQueueNotServed did not see those that ended.
func TestAClassThatNoLongerExistsHasItsNameInEachSeries(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1")
		w.Start()
		for _, name := range []string{"one", "two", "three"} {
			w.CreateClaim(name)
		}
		w.Until("all are bound", time.Minute, w.AllBound)
		w.Advance(time.Hour)
		fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*storagev1.StorageClass](w, "", "gold"))
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Takes: time.Minute, Does: fakecluster.Works}
		for _, name := range []string{"one", "two", "three"} {
			fakecluster.Delete(w, fakecluster.User, w.Claim(name))
		}
		w.Until("one is deleted", time.Hour, func() bool { return len(w.Storage) == 2 })
		w.Advance(10 * time.Second)
		w.mustCount([]string{"flex_dispatcher_queue", "flex_dispatcher_jobs", `flex_dispatcher_runs_total{class="gold",verb="delete"`}, map[string]float64{
			`flex_dispatcher_queue{class="gold",verb="delete"}`:                     1,
			`flex_dispatcher_jobs{class="gold",state="running",verb="delete"}`:      1,
			`flex_dispatcher_runs_total{class="gold",verb="delete",verdict="Done"}`: 1,
		})
	})
}

// boundSeries begin with this.
var boundSeries = []string{"flex_dispatcher_claim_to_bound_seconds_sum"}

func boundSums(wait, start, run, bind float64) map[string]float64 {
	sum := func(phase string) string { return boundSeries[0] + `{class="gold",phase="` + phase + `"}` }
	return map[string]float64{sum("wait"): wait, sum("start"): start, sum("run"): run, sum("bind"): bind}
}

func TestTheTimeUntilAClaimIsBoundIsMeasuredByPhase(t *testing.T) {
	inWorld(t, func(w *world) {
		w.bare()
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Takes: 7 * time.Second, Does: fakecluster.Works}
		w.CreateClaim("data")
		w.Start()
		w.Advance(30 * time.Second)
		w.mustCount(boundSeries, nil)
		w.CreateConfig("gold", "gold")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.Advance(time.Second)
		w.mustCount(boundSeries, boundSums(30, 0, 7, 0))
	})
}

func TestOnlyTheLeaderCountsAndARestartCountsNothingTwice(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		const always = 2 // series of every process: its build and its panics
		ctx, stop := context.WithCancel(w.Context())
		idlers := w.options
		idlers.Workers = 0 // its Run, in the end, is only to stop its queues
		second, err := controller.New(w.Server.Client("second"), w.Events, clock.RealClock{}, idlers)
		if err != nil {
			w.T.Fatal(err)
		}
		idle := newRegistry()
		second.RegisterMetrics(idle)
		second.Start(ctx)
		w.CreateClaim("data")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.Advance(time.Second)
		w.mustCount(boundSeries, boundSums(0, 0, 1, 0))
		if got := scrape(w.T, idle); len(got) > always || got[panics] != 0 {
			w.T.Errorf("a replica that does not lead counts %v", got)
		}
		stop()
		second.Run(ctx)
		second.Stopped()
		w.Stop()
		w.Start()
		w.Advance(time.Minute)
		if got := scrape(w.T, w.metrics); len(got) > always || got[panics] != 0 {
			w.T.Errorf("after a restart it counts %v anew", got)
		}
	})
}

// Another provisioner's PV has a name like ours.
func TestOursOnlySoAnotherProvisionersClaimIsNotMeasured(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		claim := w.CreateClaim("data", func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("") })
		fakecluster.Create(w, "other", &corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: contract.PVName(string(claim.UID))},
			Spec: corev1.PersistentVolumeSpec{
				ClaimRef: &corev1.ObjectReference{Namespace: "app", Name: "data", UID: claim.UID},
				Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes,
			},
		})
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		w.Advance(time.Second)
		w.mustCount(boundSeries, nil)
	})
}

func TestTheLogNamesClaimAndJobOfEveryRun(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Script(fakecluster.Fails(75, "password=s3cret")))
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("the claim is bound", time.Minute, w.IsBound("data"))
		who := "claim=app/data uid=" + string(claim.UID) + " job=" + fakecluster.ConfigNamespace + "/provision-" + string(claim.UID)
		for word, want := range map[string][]string{
			"Launched Job": {"Launched Job " + who + "-1 attempt=1", "Launched Job " + who + "-2 attempt=2"},
			"Run ended":    {"Run ended " + who + "-1 verdict=TryAgain success=false", "Run ended " + who + "-2 verdict=Done success=true"},
		} {
			if got := logsink.Of(w.Log).Lines(word); !slices.Equal(got, want) {
				w.T.Errorf("the log says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	})
}
