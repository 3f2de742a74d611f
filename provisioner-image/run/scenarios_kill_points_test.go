package run_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/run"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// A run ends at its k-th request to Cinder or Kubernetes, for every k, before the request arrives
// or after it was executed, and is run again. Provision leaves one volume, one Secret and one PV;
// delete leaves none.
func TestRunKilledAtAnyRequestIsCompletedByTheNext(t *testing.T) {
	for _, api := range []volume.Method{cinder.Auto, cinder.Reserve} {
		held := func(w *world) { w.api = api }
		for name, fate := range map[string]cindertest.Fate{"lost": cindertest.DropRequest, "served": cindertest.DropAnswer} {
			t.Run(fmt.Sprintf("%s, provision, %s", api, name), func(t *testing.T) {
				killEverywhere(t, fate, held, (*world).provision, one)
			})
			t.Run(fmt.Sprintf("%s, provision then undo, %s", api, name), func(t *testing.T) {
				killThenUndo(t, fate, held)
			})
			t.Run(fmt.Sprintf("%s, delete, %s", api, name), func(t *testing.T) {
				killEverywhere(t, fate, func(w *world) { held(w); w.provision(t) }, (*world).remove, none)
			})
		}
	}
}

// After the next run the existing volume is the claim's. After an undo it is what it was before.
func TestAdoptionKilledAtAnyRequestIsCompletedOrUndone(t *testing.T) {
	for _, api := range []volume.Method{cinder.Attachments, cinder.Reserve} {
		before := func(w *world) {
			id := w.cinder.Add("available", map[string]string{"kept": "yes"})
			w.cinder.Resize(id, 5)
			w.api, w.also = api, map[string]string{"adopt": "shop/data: " + id}
		}
		t.Run(string(api), func(t *testing.T) {
			killEverywhere(t, cindertest.DropAnswer, before, (*world).provision, one)
			for k := 1; ; k++ {
				w := newWorld(t)
				before(w)
				if !w.kill(t, k, cindertest.DropAnswer, (*world).provision) || len(w.pvs(t)) > 0 {
					return
				}
				w.wantCode(t, w.remove(t), contract.ExitDone)
				all := w.cinder.Volumes()
				if len(all) != 1 || all[0].Status != "available" || all[0].Metadata[contract.AnnClaimUID] != "" || len(w.secrets(t)) != 0 {
					t.Fatalf("undone after a kill at request %d: %+v", k, all)
				}
			}
		})
	}
}

// verb is one run of one verb.
type verb = func(*world, *testing.T) run.Result

// unbroken counts the requests of an undisturbed run.
func unbroken(t *testing.T, before func(*world), do verb) int {
	t.Helper()
	w := newWorld(t)
	before(w)
	w.guard(nil)
	if r := do(w, t); r.Code != contract.ExitDone {
		t.Fatalf("the unbroken run failed: %+v", r)
	}
	return w.guard(nil)
}

// killEverywhere ends a run at its k-th request, runs again and checks, for every k until a run is
// complete before.
func killEverywhere(t *testing.T, fate cindertest.Fate, before func(*world), do verb, check func(*testing.T, *world)) {
	t.Helper()
	points := 0
	for k := 1; ; k++ {
		w := newWorld(t)
		before(w)
		if !w.kill(t, k, fate, do) {
			break
		}
		points++
		if r := do(w, t); r.Code != contract.ExitDone {
			t.Fatalf("after a kill at request %d: %+v", k, r)
		}
		check(t, w)
		w.leaksNothing(t)
	}
	if want := unbroken(t, before, do); points != want {
		t.Errorf("%d kill points covered, an unbroken run makes %d requests", points, want)
	}
	t.Logf("%d kill points covered", points)
}

// kill executes a run whose k-th request is its last, and reports whether the run sent so many.
func (w *world) kill(t *testing.T, k int, fate cindertest.Fate, do verb) bool {
	t.Helper()
	w.guard(func(n int) cindertest.Fate {
		switch {
		case n < k:
			return cindertest.Answer
		case n == k:
			return fate
		default:
			return cindertest.DropRequest
		}
	})
	do(w, t)
	return w.guard(nil) >= k
}

func killThenUndo(t *testing.T, fate cindertest.Fate, before func(*world)) {
	t.Helper()
	for k := 1; ; k++ {
		w := newWorld(t)
		before(w)
		if !w.kill(t, k, fate, (*world).provision) {
			return
		}
		if r := w.remove(t); r.Code != contract.ExitDone {
			t.Fatalf("undo after a kill at request %d: %+v", k, r)
		}
		none(t, w)
	}
}

func one(t *testing.T, w *world) {
	t.Helper()
	volumes, secrets, pvs := w.cinder.Volumes(), w.secrets(t), w.pvs(t)
	if len(volumes) != 1 || len(secrets) != 1 || len(pvs) != 1 {
		t.Fatalf("%d volumes, %d Secrets, %d PVs", len(volumes), len(secrets), len(pvs))
	}
	if pvs[0].Annotations["flex-provisioner.io/cinder-volume-id"] != volumes[0].ID ||
		string(secrets[0].Data["node.session.auth.password"]) != cindertest.Password(volumes[0].ID) {
		t.Fatal("volume, Secret and PV do not fit together")
	}
}

func none(t *testing.T, w *world) {
	t.Helper()
	if len(w.cinder.Volumes()) != 0 || len(w.secrets(t)) != 0 || len(w.cinder.Attachments()) != 0 {
		t.Fatalf("left %v, %v and %d Secrets", w.cinder.Volumes(), w.cinder.Attachments(), len(w.secrets(t)))
	}
}

// leaksNothing fails the test if a password was printed. It checks first that the search finds a
// planted one.
func (w *world) leaksNothing(t *testing.T) {
	t.Helper()
	const canary = 9999
	printed := w.printed.String()
	if !leaks(printed+cindertest.Password(fmt.Sprintf("%08d", canary)), canary) || !strings.Contains(printed, "msg=") {
		t.Fatalf("the search finds nothing in %q", printed)
	}
	for id := range 10 {
		if leaks(printed, id) {
			t.Fatalf("the password of volume %d was printed: %s", id, printed)
		}
	}
}

func leaks(text string, id int) bool {
	return strings.Contains(text, cindertest.Password(fmt.Sprintf("%08d", id)))
}
