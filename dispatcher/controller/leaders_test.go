package controller_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// twins are two dispatchers that both believe to lead.
type twins struct {
	*world
	rand   *rand.Rand
	both   []*process
	claims int
}

// startBoth brings up both. The world's own stop ends the second, and endFirst the first.
func (t *twins) startBoth() (endFirst func()) {
	for range 2 {
		t.start()
		t.both = append(t.both, t.dispatcher)
	}
	return func() {
		t.stop()
		t.dispatcher = t.both[0]
	}
}

// image makes a volume, half of one, or none, and deletes at the second try.
func (t *twins) image(r *run) ending {
	switch {
	case r.verb == contract.Delete && t.rand.IntN(4) == 0:
		return ending{75, ""}
	case r.verb == contract.Delete:
		return works(r)
	}
	return []func(*run) ending{
		works, works, halfway(75), halfway(65), halfway(73), fails(77, ""), fails(75, ""),
		func(r *run) ending { works(r); return ending{1, ""} },
	}[t.rand.IntN(8)](r)
}

var watched = []string{"jobs", "pods", "persistentvolumes", "persistentvolumeclaims", "configmaps", "controllerrevisions"}

// move is one move of users, administrators or the network.
func (t *twins) move() {
	switch t.rand.IntN(6) {
	case 0, 1:
		t.claims++
		t.claim(fmt.Sprintf("data-%d", t.claims))
	case 2:
		if all := every[*corev1.PersistentVolumeClaim](t.world); len(all) > 0 {
			drop(t.world, user, all[t.rand.IntN(len(all))])
		}
	case 3:
		t.reconfigure("image", []string{gold, newer}[t.rand.IntN(2)])
	default:
		t.server.lag(t.both[t.rand.IntN(2)], watched[t.rand.IntN(len(watched))], t.rand.IntN(2) == 0)
	}
}

// catchUp ends every delay.
func (t *twins) catchUp() {
	for _, p := range t.both {
		for _, resource := range watched {
			t.server.lag(p, resource, false)
		}
	}
}

// mustHaveJustTheirs checks that every claim is bound to its own volume, and that there is no other.
func (t *twins) mustHaveJustTheirs() {
	t.t.Helper()
	all := every[*corev1.PersistentVolumeClaim](t.world)
	for _, claim := range all {
		if !t.storage[string(claim.UID)] || t.pvOf(claim) == nil {
			t.t.Errorf("the claim %s has lost its volume", claim.Name)
		}
	}
	if len(t.storage) != len(all) {
		t.t.Errorf("%d claims have %d volumes", len(all), len(t.storage))
	}
}

// live plays whole lives of claims, and ends them.
func (t *twins) live() {
	t.goldClass(t.image)
	t.images[newer] = image{does: t.image}
	defer t.startBoth()()
	for range 20 {
		t.move()
		t.run(time.Duration(t.rand.IntN(8000)) * time.Millisecond)
	}
	t.catchUp()
	t.images[gold], t.images[newer] = image{does: works}, image{does: works}
	t.until("every claim is bound", 2*time.Hour, t.allBound)
	t.until("every record is released", 2*time.Hour, func() bool { return len(t.records()) == 0 })
	t.run(time.Minute)
	t.mustHaveJustTheirs()
	for _, claim := range every[*corev1.PersistentVolumeClaim](t.world) {
		drop(t.world, user, claim)
	}
	t.until("nothing is left", 2*time.Hour, t.empty)
}

// Two leaders at once, over whole lives of claims, with caches that fall behind and catch up: at any time at
// most one Job of a UID is unfinished, which the world checks, and no volume is lost or doubled.
func TestRule14TwoDispatchersWithStaleCachesLoseAndDoubleNothing(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inWorld(t, func(w *world) { (&twins{world: w, rand: rand.New(rand.NewPCG(seed, 14))}).live() })
		})
	}
}

// One of them is stopped between its last look and the Job that it makes, and comes back when the other has done
// it all. By its name that Job is the same, and the first run of a claim is made once.
func TestRule14ALeaderThatIsStoppedBeforeItLaunchesIsHarmless(t *testing.T) {
	inWorld(t, func(w *world) {
		stopped := make(chan struct{}, 1)
		w.pause = func() {
			select {
			case stopped <- struct{}{}:
				time.Sleep(10 * time.Second)
			default:
			}
		}
		w.goldClass(works)
		pair := &twins{world: w}
		defer pair.startBoth()()
		claim := w.claim("data")
		w.until("the other serves it", 5*time.Second, w.bound("data"))
		w.run(time.Minute)
		if n := len(w.made("")); n != 1 {
			w.t.Errorf("%d Jobs, want 1", n)
		}
		drop(w, user, claim)
		w.until("nothing is left", time.Minute, w.empty)
		w.mustRun("provision", "delete")
	})
}
