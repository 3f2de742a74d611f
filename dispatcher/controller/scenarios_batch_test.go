package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// batches are how many claims each Job of a verb was made for, in order.
func (w *world) batches(verb contract.Verb) []int {
	var out []int
	for _, c := range w.CreatedJobs(verb) {
		out = append(out, len(jobs.UIDs(c.Now.(*batchv1.Job))))
	}
	return out
}

// behind lets claims wait behind one whose Job takes a minute, and returns when that has ended.
func (w *world) behind(names ...string) {
	w.T.Helper()
	does := w.Images[fakecluster.GoldImage]
	w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: time.Minute}
	w.CreateClaim("first")
	w.Until("the first pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
	for _, name := range names {
		w.CreateClaim(name)
	}
	w.Advance(time.Second)
	w.Until("the first is done", 2*time.Minute, w.IsBound("first"))
	w.Images[fakecluster.GoldImage] = does
}

func aboutClaim(name string) string { return "PersistentVolumeClaim/" + name }

// except plays something else for the provisions of one claim.
func except(name string, step func(*fakecluster.Run) fakecluster.Exit) func(*fakecluster.Run) fakecluster.Exit {
	return func(r *fakecluster.Run) fakecluster.Exit {
		if r.Request.Name == name && r.Verb == contract.Provision {
			return step(r)
		}
		return fakecluster.Works(r)
	}
}

func TestABurstIsServedByFewerJobsThanClaims(t *testing.T) {
	const claims = 41
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1", "batch-size", "8")
		w.Start()
		for i := range claims {
			w.CreateClaim(fmt.Sprintf("data-%d", i))
		}
		w.Until("all are bound", time.Minute, func() bool { return len(w.Storage) == claims && w.AllBound() })
		w.Until("all are shown and released", time.Minute, func() bool {
			return len(w.HeldRecords()) == 0 && !slices.ContainsFunc(fakecluster.List[*corev1.PersistentVolumeClaim](w), func(claim *corev1.PersistentVolumeClaim) bool {
				return claim.Annotations[contract.AnnResult] != "succeeded"
			})
		})
		if n := len(w.CreatedJobs("")); n > 7 {
			w.T.Errorf("%d Jobs for %d claims: %v", n, claims, w.batches(""))
		}
		before := len(w.CreatedJobs(""))
		for _, claim := range fakecluster.List[*corev1.PersistentVolumeClaim](w) {
			fakecluster.Delete(w, fakecluster.User, claim)
		}
		w.Until("nothing is left", time.Minute, w.Empty)
		if n := len(w.CreatedJobs("")) - before; n > 8 {
			w.T.Errorf("%d Jobs to delete %d volumes: %v", n, claims, w.batches(contract.Delete))
		}
		if n := slices.Max(w.batches("")); n != 8 {
			w.T.Errorf("the largest batch has %d requests, want 8", n)
		}
		if got := w.most(); got != 1 {
			w.T.Errorf("%d Jobs at a time", got)
		}
		w.Until("the Jobs expire", 10*time.Minute, func() bool { return len(fakecluster.List[*batchv1.Job](w)) == 0 })
	})
}

func TestWithAFreeSlotAClaimIsLaunchedAloneAndAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "10", "batch-size", "8")
		w.Start()
		for i := range 10 {
			claim := w.CreateClaim(fmt.Sprintf("data-%d", i))
			w.Until("it has a Job", time.Minute, func() bool { return len(w.CreatedJobs("")) == i+1 })
			if waited := time.Since(claim.CreationTimestamp.Time); waited > time.Second {
				w.T.Errorf("a claim waited %s for company", waited)
			}
			time.Sleep(time.Second)
		}
		if n := slices.Max(w.batches("")); n != 1 {
			w.T.Errorf("a Job for %d claims", n)
		}
	})
}

func TestABadRequestIsReportedOnItsOwnClaimAndBlocksNoOther(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(except("bad", fakecluster.Fails(65, "claim: this class serves at most 10Gi\nsecret noise")), "max-parallel", "1", "batch-size", "8", "max-attempts", "1")
		w.Start()
		w.behind("good-1", "good-2", "bad", "good-3", "good-4")
		w.Until("the others are bound", 5*time.Second, func() bool {
			return w.IsBound("good-1")() && w.IsBound("good-2")() && w.IsBound("good-3")() && w.IsBound("good-4")()
		})
		w.Advance(2 * runs.ShownAfter)
		if got := w.batches(contract.Provision); !slices.Equal(got, []int{1, 5}) {
			w.T.Errorf("Jobs for %v claims", got)
		}
		w.MustEmit(aboutClaim("bad"), "ProvisioningFailed", 1, "this class serves at most 10Gi", "BadRequest (exit code 65)")
		for _, name := range []string{"good-1", "good-2", "good-3", "good-4"} {
			w.MustEmit(aboutClaim(name), "ProvisioningSucceeded", 0)
			w.MustEmit(aboutClaim(name), "ProvisioningFailed", 0)
			if a := w.Claim(name).Annotations; a[contract.AnnMessage] != "" || a[contract.AnnExitCode] != "0" || a[contract.AnnResult] != "succeeded" {
				w.T.Errorf("%s shows %v", name, a)
			}
		}
		if a := w.Claim("bad").Annotations; a[contract.AnnMessage] != "this class serves at most 10Gi" || a[contract.AnnExitCode] != "65" {
			w.T.Errorf("the bad one shows %v", a)
		}
		for _, e := range w.Events.About("", "") {
			if strings.Contains(e.Note, "noise") && !strings.HasPrefix(e.About, "Job/") {
				w.T.Errorf("%s about %s says %q", e.Reason, e.About, e.Note)
			}
		}
	})
}

// The batch dies without a word after the second of five: what it made is found, and who is not
// served is tried alone, uncounted.
func TestARequestWithoutAResultLineIsRetriedAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1", "batch-size", "8", "max-attempts", "1")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: except("bad", fakecluster.Fails(139, "claim: never for others")), Batch: func(runs []*fakecluster.Run) fakecluster.Exit {
			for _, r := range runs[:2] {
				fakecluster.Works(r)
			}
			return fakecluster.Exit{Code: 139, Message: "claim: whose is this?\nSegmentation fault"}
		}}
		w.Start()
		w.behind("good-1", "good-2", "bad", "good-3", "good-4")
		w.Until("all but the bad one are bound", time.Minute, func() bool { return len(w.Storage) == 5 })
		w.Advance(time.Minute)
		if got := w.batches(contract.Provision); !slices.Equal(got, []int{1, 5, 1, 1, 1}) {
			w.T.Errorf("Jobs for %v claims", got)
		}
		w.MustNotContain("PersistentVolumeClaim", "whose is this")
		for _, name := range []string{"good-1", "good-2", "good-3", "good-4"} {
			if a := w.Claim(name).Annotations; a[contract.AnnResult] != "succeeded" || a[contract.AnnAttempts] != "1" {
				w.T.Errorf("%s shows %v", name, a)
			}
		}
		w.MustEmit(aboutClaim("good-3"), "ProvisioningFailed", 1, "the batch has no result of this request", "next attempt in 1s")
		w.MustEmit(aboutClaim("good-1"), "ProvisioningFailed", 0)
		w.MustEmitSome(aboutClaim("bad"), "Stalled")
		w.MustEmit("Job/"+w.CreatedJobs("")[1].Name, "ContainerOutput", 1, "whose is this?")
	})
}

// Of a delete only a word counts: a PV goes after its volume, never before.
func TestADeleteWithoutAResultLineHasFailed(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1", "batch-size", "8")
		w.Start()
		for i := range 6 {
			w.provisioned(fmt.Sprintf("data-%d", i))
		}
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works, Takes: 10 * time.Second, Batch: func(runs []*fakecluster.Run) fakecluster.Exit {
			var said string
			for i, r := range runs {
				if i%2 == 0 {
					fakecluster.Works(r)
					said += r.ResultLine(0, "")
				}
			}
			return fakecluster.Exit{Code: 1, Message: said + "Killed"}
		}}
		for _, claim := range fakecluster.List[*corev1.PersistentVolumeClaim](w) {
			fakecluster.Delete(w, fakecluster.User, claim)
		}
		w.Until("the batch has ended", time.Minute, func() bool { return len(w.RunsOf(contract.Delete)) == 6 })
		w.Until("nothing is left", 2*time.Minute, w.Empty)
		w.mustGoAloneAfterwards(contract.Delete)
		for _, c := range w.Server.History() {
			if pv, ok := c.Old.(*corev1.PersistentVolume); ok && c.Now == nil && w.Storage[pv.Annotations[contract.AnnClaimUID]] {
				w.T.Errorf("the PV %s went before its volume", pv.Name)
			}
		}
	})
}

// mustGoAloneAfterwards checks that some claims had a second Job, and each of them alone.
func (w *world) mustGoAloneAfterwards(verb contract.Verb) {
	w.T.Helper()
	served, again := map[string]bool{}, 0
	for _, c := range w.CreatedJobs(verb) {
		uids := jobs.UIDs(c.Now.(*batchv1.Job))
		for _, uid := range uids {
			if served[uid] {
				again++
				if len(uids) > 1 {
					w.T.Errorf("%s goes with %v once more", uid, uids)
				}
			}
			served[uid] = true
		}
	}
	if again == 0 {
		w.T.Errorf("nobody was tried again: %v", w.batches(verb))
	}
}

func TestAbandonedIsUndoneAloneAfterABatch(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(except("leaves", fakecluster.Halfway(75)), "max-parallel", "1", "batch-size", "8")
		w.Start()
		w.behind("stays-1", "leaves", "stays-2")
		w.Until("the batch runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		fakecluster.Delete(w, fakecluster.User, w.Claim("leaves"))
		w.Until("the others are bound", time.Minute, func() bool { return w.IsBound("stays-1")() && w.IsBound("stays-2")() })
		w.Until("it is undone", time.Minute, func() bool { return len(w.RunsOf(contract.Delete)) == 1 && len(w.HeldRecords()) == 0 })
		undo, undone := w.RunsOf(contract.Delete)[0], (*fakecluster.Run)(nil)
		for _, r := range w.RunsOf(contract.Provision) {
			if r.Request.Name == "leaves" {
				undone = r
			}
		}
		w.MustUndo(undo, undone)
		if len(w.Storage) != 3 || w.Storage[undone.Request.UID] {
			w.T.Errorf("the storage holds %v", w.Storage)
		}
		if got := w.batches(""); !slices.Equal(got, []int{1, 3, 1}) {
			w.T.Errorf("Jobs for %v claims", got)
		}
	})
}

func TestNamespacesAlternateInABatchToo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "max-parallel", "1", "batch-size", "4")
		w.Start()
		w.burst("busy", 40)
		w.Advance(4 * time.Second)
		before := len(w.CreatedJobs(""))
		for i := range 4 {
			w.CreateClaim(fmt.Sprintf("quiet-%d", i), inNamespace("quiet"))
		}
		w.Until("the quiet ones have their Jobs", time.Minute, func() bool {
			n := 0
			for _, claim := range fakecluster.List[*corev1.PersistentVolumeClaim](w) {
				if claim.Namespace == "quiet" && claim.Spec.VolumeName != "" {
					n++
				}
			}
			return n == 4
		})
		if n := len(w.CreatedJobs("")) - before; n > 4 {
			w.T.Errorf("four claims waited for %d Jobs of another namespace's burst", n)
		}
		mixed := 0
		for _, c := range w.CreatedJobs("")[before:] {
			served, job := map[string]bool{}, c.Now.(*batchv1.Job)
			for _, uid := range jobs.UIDs(job) {
				served[jobs.RecordOf(job, uid).Namespace] = true
			}
			mixed += len(served) / 2
		}
		if mixed == 0 {
			w.T.Error("no Job serves both namespaces")
		}
	})
}

// What a Job has once must be the same for all: the node, and the config.
func TestOnlyRequestsOfOneNodeShareABatch(t *testing.T) {
	inWorld(t, func(w *world) {
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		w.CreateClass("gold", corev1.PersistentVolumeReclaimDelete, fakecluster.WaitForFirstConsumer)
		w.CreateServiceAccount("true")
		w.CreateConfig("gold", "gold", "run-on", "selected-node", "max-parallel", "1", "batch-size", "8")
		for _, node := range []string{"n1", "n2"} {
			w.CreateNode(node)
		}
		w.Start()
		for i := range 12 {
			w.CreateClaim(fmt.Sprintf("data-%d", i), func(c *corev1.PersistentVolumeClaim) {
				fakecluster.Annotate(c, fakecluster.AnnSelectedNode, []string{"n1", "n2"}[i%2])
			})
		}
		w.Until("all are bound", time.Minute, w.AllBound)
		for _, c := range w.CreatedJobs("") {
			job := c.Now.(*batchv1.Job)
			nodes := map[string]bool{}
			for _, uid := range jobs.UIDs(job) {
				nodes[jobs.RecordOf(job, uid).Node] = true
			}
			if len(nodes) != 1 {
				w.T.Errorf("%s serves claims of the nodes %v", job.Name, nodes)
			}
		}
		if n := len(w.CreatedJobs("")); n > 5 {
			w.T.Errorf("%d Jobs: %v", n, w.batches(""))
		}
	})
}
