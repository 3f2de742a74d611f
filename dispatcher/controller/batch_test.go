package controller_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// batches are how many claims each Job of a verb was made for, in order.
func (w *world) batches(verb contract.Verb) []int {
	var out []int
	for _, c := range w.made(verb) {
		out = append(out, len(jobs.UIDs(c.now.(*batchv1.Job))))
	}
	return out
}

// behind lets claims wait behind one whose Job takes a minute, and returns when that has ended.
func (w *world) behind(names ...string) {
	w.t.Helper()
	does := w.images[gold]
	w.images[gold] = image{does: works, takes: time.Minute}
	w.claim("first")
	w.until("the first pod runs", time.Minute, func() bool { return len(w.running()) == 1 })
	for _, name := range names {
		w.claim(name)
	}
	w.run(time.Second)
	w.until("the first is done", 2*time.Minute, w.bound("first"))
	w.images[gold] = does
}

func aboutClaim(name string) string { return "PersistentVolumeClaim/" + name }

// except plays something else for the provisions of one claim.
func except(name string, step func(*run) ending) func(*run) ending {
	return func(r *run) ending {
		if r.request.Name == name && r.verb == contract.Provision {
			return step(r)
		}
		return works(r)
	}
}

func TestItem10ABurstIsServedByFewerJobsThanClaims(t *testing.T) {
	const claims = 41
	inWorld(t, func(w *world) {
		w.goldClass(works, "max-parallel", "1", "batch-size", "8")
		w.start()
		for i := range claims {
			w.claim(fmt.Sprintf("data-%d", i))
		}
		w.until("all are bound", time.Minute, func() bool { return len(w.storage) == claims && w.allBound() })
		w.until("all are told and released", time.Minute, func() bool {
			return len(w.records()) == 0 && len(w.events.said("", "ProvisioningSucceeded")) == claims
		})
		for i := range claims {
			name := aboutClaim(fmt.Sprintf("data-%d", i))
			w.mustTell(name, "Provisioning", 1, "attempt 1")
			w.mustTell(name, "ProvisioningSucceeded", 1)
		}
		if n := len(w.made("")); n > 7 {
			w.t.Errorf("%d Jobs for %d claims: %v", n, claims, w.batches(""))
		}
		before := len(w.made(""))
		for _, claim := range every[*corev1.PersistentVolumeClaim](w) {
			drop(w, user, claim)
		}
		w.until("nothing is left", time.Minute, w.empty)
		if n := len(w.made("")) - before; n > 8 {
			w.t.Errorf("%d Jobs to delete %d volumes: %v", n, claims, w.batches(contract.Delete))
		}
		if n := slices.Max(w.batches("")); n != 8 {
			w.t.Errorf("the largest batch has %d requests, want 8", n)
		}
		if got := w.most(); got != 1 {
			w.t.Errorf("%d Jobs at a time", got)
		}
		w.until("the Jobs expire", 10*time.Minute, func() bool { return len(every[*batchv1.Job](w)) == 0 })
	})
}

func TestItem10WithAFreeSlotEachClaimGoesAloneAndAtOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works, "max-parallel", "10", "batch-size", "8")
		w.start()
		for i := range 10 {
			claim := w.claim(fmt.Sprintf("data-%d", i))
			w.until("it has a Job", time.Minute, func() bool { return len(w.made("")) == i+1 })
			if waited := time.Since(claim.CreationTimestamp.Time); waited > time.Second {
				w.t.Errorf("a claim waited %s for company", waited)
			}
		}
		if n := slices.Max(w.batches("")); n != 1 {
			w.t.Errorf("a Job for %d claims", n)
		}
	})
}

func TestItem10ABadRequestIsReportedOnItsOwnClaimAndBlocksNobody(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(except("bad", fails(65, "claim: this class serves at most 10Gi\nsecret noise")), "max-parallel", "1", "batch-size", "8", "max-attempts", "1")
		w.start()
		w.behind("good-1", "good-2", "bad", "good-3", "good-4")
		w.until("the others are bound", 5*time.Second, func() bool {
			return w.bound("good-1")() && w.bound("good-2")() && w.bound("good-3")() && w.bound("good-4")()
		})
		w.run(time.Minute)
		if got := w.batches(contract.Provision); !slices.Equal(got, []int{1, 5}) {
			w.t.Errorf("Jobs for %v claims", got)
		}
		w.mustTell(aboutClaim("bad"), "ProvisioningFailed", 1, "this class serves at most 10Gi", "BadRequest (exit code 65)")
		for _, name := range []string{"good-1", "good-2", "good-3", "good-4"} {
			w.mustTell(aboutClaim(name), "ProvisioningSucceeded", 1)
			w.mustTell(aboutClaim(name), "ProvisioningFailed", 0)
			if a := w.now(name).Annotations; a[contract.AnnMessage] != "" || a[contract.AnnExitCode] != "0" || a[contract.AnnResult] != "succeeded" {
				w.t.Errorf("%s shows %v", name, a)
			}
		}
		if a := w.now("bad").Annotations; a[contract.AnnMessage] != "this class serves at most 10Gi" || a[contract.AnnExitCode] != "65" {
			w.t.Errorf("the bad one shows %v", a)
		}
		for _, e := range w.events.said("", "") {
			if strings.Contains(e.note, "noise") && !strings.HasPrefix(e.about, "Job/") {
				w.t.Errorf("%s about %s says %q", e.reason, e.about, e.note)
			}
		}
	})
}

// The batch dies without a word after the second of five: what it made is found, and who is not served is
// tried alone, uncounted.
func TestItem10WhoeverABatchIsSilentAboutIsTriedAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works, "max-parallel", "1", "batch-size", "8", "max-attempts", "1")
		w.images[gold] = image{does: except("bad", fails(139, "claim: never for others")), batch: func(runs []*run) ending {
			for _, r := range runs[:2] {
				works(r)
			}
			return ending{139, "claim: whose is this?\nSegmentation fault"}
		}}
		w.start()
		w.behind("good-1", "good-2", "bad", "good-3", "good-4")
		w.until("all but the bad one are bound", time.Minute, func() bool { return len(w.storage) == 5 })
		w.run(time.Minute)
		if got := w.batches(contract.Provision); !slices.Equal(got, []int{1, 5, 1, 1, 1}) {
			w.t.Errorf("Jobs for %v claims", got)
		}
		w.mustNotSayTo("PersistentVolumeClaim", "whose is this")
		for _, name := range []string{"good-1", "good-2", "good-3", "good-4"} {
			if a := w.now(name).Annotations; a[contract.AnnResult] != "succeeded" || a[contract.AnnAttempts] != "1" {
				w.t.Errorf("%s shows %v", name, a)
			}
		}
		w.mustTell(aboutClaim("good-3"), "ProvisioningFailed", 1, "the batch says nothing of this request", "next attempt in 1s")
		w.mustTell(aboutClaim("good-1"), "ProvisioningFailed", 0)
		w.mustSay(aboutClaim("bad"), "Stalled")
		w.mustTell("Job/"+w.made("")[1].name, "ContainerOutput", 1, "whose is this?")
	})
}

// mustNotSayTo checks that no event about a kind of object has these words.
func (w *world) mustNotSayTo(kind, words string) {
	w.t.Helper()
	for _, e := range w.events.said("", "") {
		if strings.HasPrefix(e.about, kind+"/") && strings.Contains(e.note, words) {
			w.t.Errorf("%s about %s says %q", e.reason, e.about, e.note)
		}
	}
}

// Of a delete only a word counts: a PV goes after its volume, never before.
func TestItem10SilenceAboutADeleteIsAFailure(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works, "max-parallel", "1", "batch-size", "8")
		w.start()
		for i := range 6 {
			w.settled(fmt.Sprintf("data-%d", i))
		}
		w.images[gold] = image{does: works, takes: 10 * time.Second, batch: func(runs []*run) ending {
			var said string
			for i, r := range runs {
				if i%2 == 0 {
					works(r)
					said += r.result(0, "")
				}
			}
			return ending{1, said + "Killed"}
		}}
		for _, claim := range every[*corev1.PersistentVolumeClaim](w) {
			drop(w, user, claim)
		}
		w.until("the batch has ended", time.Minute, func() bool { return len(w.ran(contract.Delete)) == 6 })
		w.until("nothing is left", 2*time.Minute, w.empty)
		w.mustGoAloneAfterwards(contract.Delete)
		for _, c := range w.server.history() {
			if pv, ok := c.old.(*corev1.PersistentVolume); ok && c.now == nil && w.storage[pv.Annotations[contract.AnnClaimUID]] {
				w.t.Errorf("the PV %s went before its volume", pv.Name)
			}
		}
	})
}

// mustGoAloneAfterwards checks that some claims had a second Job, and shared it with nobody.
func (w *world) mustGoAloneAfterwards(verb contract.Verb) {
	w.t.Helper()
	served, again := map[string]bool{}, 0
	for _, c := range w.made(verb) {
		uids := jobs.UIDs(c.now.(*batchv1.Job))
		for _, uid := range uids {
			if served[uid] {
				again++
				if len(uids) > 1 {
					w.t.Errorf("%s goes with %v once more", uid, uids)
				}
			}
			served[uid] = true
		}
	}
	if again == 0 {
		w.t.Errorf("nobody was tried again: %v", w.batches(verb))
	}
}

func TestItem10AClaimThatGoesFromABatchIsUndoneAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(except("leaves", halfway(75)), "max-parallel", "1", "batch-size", "8")
		w.start()
		w.behind("stays-1", "leaves", "stays-2")
		w.until("the batch runs", time.Minute, func() bool { return len(w.running()) == 1 })
		drop(w, user, w.now("leaves"))
		w.until("the others are bound", time.Minute, func() bool { return w.bound("stays-1")() && w.bound("stays-2")() })
		w.until("it is undone", time.Minute, func() bool { return len(w.ran(contract.Delete)) == 1 && len(w.records()) == 0 })
		undo, undone := w.ran(contract.Delete)[0], (*run)(nil)
		for _, r := range w.ran(contract.Provision) {
			if r.request.Name == "leaves" {
				undone = r
			}
		}
		w.mustUndo(undo, undone)
		if len(w.storage) != 3 || w.storage[undone.request.UID] {
			w.t.Errorf("the storage holds %v", w.storage)
		}
		if got := w.batches(""); !slices.Equal(got, []int{1, 3, 1}) {
			w.t.Errorf("Jobs for %v claims", got)
		}
	})
}

func TestItem10NamespacesTakeTurnsInABatchToo(t *testing.T) {
	inWorld(t, func(w *world) {
		w.goldClass(works, "max-parallel", "1", "batch-size", "4")
		w.start()
		w.burst("busy", 40)
		w.run(4 * time.Second)
		before := len(w.made(""))
		for i := range 4 {
			w.claim(fmt.Sprintf("quiet-%d", i), inNamespace("quiet"))
		}
		w.until("the quiet ones have their Jobs", time.Minute, func() bool {
			n := 0
			for _, claim := range every[*corev1.PersistentVolumeClaim](w) {
				if claim.Namespace == "quiet" && claim.Spec.VolumeName != "" {
					n++
				}
			}
			return n == 4
		})
		if n := len(w.made("")) - before; n > 4 {
			w.t.Errorf("four claims waited for %d Jobs of another namespace's burst", n)
		}
		mixed := 0
		for _, c := range w.made("")[before:] {
			served, job := map[string]bool{}, c.now.(*batchv1.Job)
			for _, uid := range jobs.UIDs(job) {
				served[job.Annotations[jobs.Key(job, uid, jobs.AnnNamespace)]] = true
			}
			mixed += len(served) / 2
		}
		if mixed == 0 {
			w.t.Error("no Job serves both namespaces")
		}
	})
}

// What a Job has once must be the same for all: the node, and the config.
func TestItem10OnlyTheLikeShareAJob(t *testing.T) {
	inWorld(t, func(w *world) {
		w.images[gold] = image{does: works}
		w.class("gold", corev1.PersistentVolumeReclaimDelete, firstConsumer)
		w.account("true")
		w.config("gold", "gold", "run-on", "selected-node", "max-parallel", "1", "batch-size", "8")
		for _, node := range []string{"n1", "n2"} {
			add(w, admin, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node}})
		}
		w.start()
		for i := range 12 {
			w.claim(fmt.Sprintf("data-%d", i), func(c *corev1.PersistentVolumeClaim) { annotate(c, annNode, []string{"n1", "n2"}[i%2]) })
		}
		w.until("all are bound", time.Minute, w.allBound)
		for _, c := range w.made("") {
			job := c.now.(*batchv1.Job)
			nodes := map[string]bool{}
			for _, uid := range jobs.UIDs(job) {
				nodes[job.Annotations[jobs.Key(job, uid, jobs.AnnNode)]] = true
			}
			if len(nodes) != 1 {
				w.t.Errorf("%s serves claims of the nodes %v", job.Name, nodes)
			}
		}
		if n := len(w.made("")); n > 5 {
			w.t.Errorf("%d Jobs: %v", n, w.batches(""))
		}
	})
}
