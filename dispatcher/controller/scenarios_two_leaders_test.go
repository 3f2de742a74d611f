package controller_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// twins are two dispatchers that both believe to lead.
type twins struct {
	*world
	rand   *rand.Rand
	both   []*fakecluster.Process
	claims int
}

func (t *twins) startBoth() {
	for range 2 {
		t.both = append(t.both, t.Start())
	}
}

// image makes a volume, half of one, or none, and deletes at the second try.
func (t *twins) image(r *fakecluster.Run) fakecluster.Exit {
	switch {
	case r.Verb == contract.Delete && t.rand.IntN(4) == 0:
		return fakecluster.Exit{Code: 75}
	case r.Verb == contract.Delete:
		return fakecluster.Works(r)
	}
	return []func(*fakecluster.Run) fakecluster.Exit{
		fakecluster.Works, fakecluster.Works, fakecluster.Halfway(75), fakecluster.Halfway(65), fakecluster.Halfway(73), fakecluster.Fails(77, ""), fakecluster.Fails(75, ""),
		func(r *fakecluster.Run) fakecluster.Exit { fakecluster.Works(r); return fakecluster.Exit{Code: 1} },
	}[t.rand.IntN(8)](r)
}

var watched = []string{"jobs", "pods", "persistentvolumes", "persistentvolumeclaims", "configmaps", "controllerrevisions"}

// move is one move of users, administrators or the network.
func (t *twins) move() {
	switch t.rand.IntN(6) {
	case 0, 1:
		t.claims++
		t.CreateClaim(fmt.Sprintf("data-%d", t.claims))
	case 2:
		if all := fakecluster.List[*corev1.PersistentVolumeClaim](t.world); len(all) > 0 {
			fakecluster.Delete(t.world, fakecluster.User, all[t.rand.IntN(len(all))])
		}
	case 3:
		t.UpdateConfig("image", []string{fakecluster.GoldImage, newer}[t.rand.IntN(2)])
	default:
		t.both[t.rand.IntN(2)].DelayWatches(watched[t.rand.IntN(len(watched))], t.rand.IntN(2) == 0)
	}
}

// catchUp ends every delay.
func (t *twins) catchUp() {
	for _, p := range t.both {
		for _, resource := range watched {
			p.DelayWatches(resource, false)
		}
	}
}

// mustHaveJustTheirs checks that every claim is bound to its own volume, and that there is no
// other.
func (t *twins) mustHaveJustTheirs() {
	t.T.Helper()
	all := fakecluster.List[*corev1.PersistentVolumeClaim](t.world)
	for _, claim := range all {
		if !t.Storage[string(claim.UID)] || t.PVOf(claim) == nil {
			t.T.Errorf("the claim %s has lost its volume", claim.Name)
		}
	}
	if len(t.Storage) != len(all) {
		t.T.Errorf("%d claims have %d volumes", len(all), len(t.Storage))
	}
}

// live plays whole lives of claims, and ends them.
func (t *twins) live(keys ...string) {
	t.SetUpGold(t.image, keys...)
	t.Images[newer] = fakecluster.Image{Does: t.image}
	t.startBoth()
	for range 20 {
		t.move()
		t.Advance(time.Duration(t.rand.IntN(8000)) * time.Millisecond)
	}
	t.catchUp()
	t.Images[fakecluster.GoldImage], t.Images[newer] = fakecluster.Image{Does: fakecluster.Works}, fakecluster.Image{Does: fakecluster.Works}
	t.Until("every claim is bound", 2*time.Hour, t.AllBound)
	t.Until("every record is released", 2*time.Hour, func() bool { return len(t.HeldRecords()) == 0 })
	t.Advance(time.Minute)
	t.mustHaveJustTheirs()
	for _, claim := range fakecluster.List[*corev1.PersistentVolumeClaim](t.world) {
		fakecluster.Delete(t.world, fakecluster.User, claim)
	}
	t.Until("nothing is left", 2*time.Hour, t.Empty)
}

// Two leaders at once, over whole lives of claims, with caches that fall behind and catch up: at
// any time at most one Job of a UID is unfinished, which the world checks, and no volume is lost or
// doubled.
func TestTwoLeadersWithStaleCachesLoseAndDoubleNothing(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inWorld(t, func(w *world) { (&twins{world: w, rand: rand.New(rand.NewPCG(seed, 14))}).live() })
		})
	}
}

// Jobs of batches are named after their first claims, so two of them that serve the same claim do
// not collide by their names.
func TestOneRunPerClaimAlsoInTwoBatchesOfTwoLeaders(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			inWorld(t, func(w *world) {
				(&twins{world: w, rand: rand.New(rand.NewPCG(seed, 15))}).live("batch-size", "4", "max-parallel", "1")
			})
		})
	}
}

// One of them is stopped between its last look and the Job that it makes, and comes back when the
// other has done it all. By its name that Job is the same, and the first run of a claim is made
// once.
func TestTwoLeadersOfWhichOneStopsBeforeItsLaunchCreateOneJob(t *testing.T) {
	inWorld(t, func(w *world) {
		stopped := make(chan struct{}, 1)
		w.BeforeWrite = func(verb, resource string) {
			if verb != "create" || resource != "jobs" {
				return
			}
			select {
			case stopped <- struct{}{}:
				time.Sleep(10 * time.Second)
			default:
			}
		}
		w.SetUpGold(fakecluster.Works)
		pair := &twins{world: w}
		pair.startBoth()
		claim := w.CreateClaim("data")
		w.Until("the other serves it", 5*time.Second, w.IsBound("data"))
		w.Advance(time.Minute)
		if n := len(w.CreatedJobs("")); n != 1 {
			w.T.Errorf("%d Jobs, want 1", n)
		}
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("nothing is left", time.Minute, w.Empty)
		w.MustRun("provision", "delete")
	})
}
