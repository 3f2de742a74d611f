package skew_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/controller"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/test/bubble"
)

// world is a cluster in which a story happens, or goes on.
type world struct {
	*fakecluster.Cluster
	story story
	// ran are the runs of the story, as they are written into its file.
	ran []ran
	// stepped is set while a story happens: everything happens in an order, so that it happens the
	// same way again.
	stepped bool
	// waited is set if no dispatcher ran for longer than Jobs are kept.
	waited bool
}

// inWorld runs a test in a world of its own, in fake time. The goroutine of the test may end.
func inWorld(t fakecluster.T, s story, test func(*world)) {
	t.Helper()
	synctest.Test(testOf(t), func(inner *testing.T) {
		w := &world{story: s}
		w.Cluster = bubble.New(of(inner, t), w.newDispatcher)
		defer w.Stop()
		for image, does := range s.images() {
			w.Images[image] = fakecluster.Image{Does: w.noted(does)}
		}
		w.Choices = slices.Clone(s.choices)
		done := make(chan struct{})
		go func() { // which a world that fails ends
			defer close(done)
			test(w)
		}()
		<-done
	})
}

func (w *world) newDispatcher(p *fakecluster.Process) (fakecluster.Dispatcher, error) {
	options := controller.Options{
		Dispatcher: config.Dispatcher{Provisioner: contract.ProvisionerName}, Namespaces: []string{fakecluster.ConfigNamespace}, Allowed: jobs.Allowances{},
		KubeAPI: "https://10.0.0.1", Workers: 1, AheadOfBinder: true,
	}
	if w.stepped {
		options.Claims, options.Runs, options.Revisions = fakecluster.NewQueue[types.UID](p, "claims"), fakecluster.NewQueue[string](p, "runs"), fakecluster.NewQueue[string](p, "revisions")
	}
	return controller.New(p.Client, p.Events, p.Clock, options)
}

// noted returns what a container does, and notes what it has done.
func (w *world) noted(does func(*fakecluster.Run) fakecluster.Exit) func(*fakecluster.Run) fakecluster.Exit {
	return func(r *fakecluster.Run) fakecluster.Exit {
		began := len(w.Server.History())
		exit := does(r)
		w.ran = append(w.ran, ran{
			Began: began, Pod: r.Pod.Name, Verb: r.Verb, UID: r.Request.UID, Code: exit.Code,
			HasVolume: w.Storage[r.Request.UID], Source: w.Contents[r.Request.UID],
		})
		return exit
	}
}

// resume makes the beginning of a story the past of the world.
func (w *world) resume(past *past, writes int) {
	changes := past.changes(writes)
	time.Sleep(time.Until(changes[writes-1].At))
	w.Replay(changes)
	for _, r := range past.Runs {
		if r.Began < writes && r.HasVolume {
			w.Storage[r.UID], w.Contents[r.UID] = true, r.Source
		} else if r.Began < writes {
			delete(w.Storage, r.UID)
			delete(w.Contents, r.UID)
		}
		if r.Ended <= writes { // the kubelet goes on with any other that has begun
			w.Runs = append(w.Runs, &fakecluster.Run{Verb: r.Verb, Request: contract.Request{UID: r.UID}})
			w.ran = append(w.ran, r)
		}
	}
}

// until lets a story go on until a condition holds, one move after the other.
func (w *world) until(what string, holds func() bool) {
	w.T.Helper()
	const longest = 200000
	for range longest {
		before := len(w.Server.History())
		synctest.Wait()
		for _, move := range w.Moves() {
			if holds() {
				return
			}
			move.Do()
			synctest.Wait()
		}
		if len(w.Server.History()) == before {
			time.Sleep(time.Second)
		}
	}
	w.T.Fatalf("never: %s\n%s", what, w.Story())
}

// of returns the T of a world: the caller's, if that is no test itself.
func of(t *testing.T, caller fakecluster.T) fakecluster.T {
	t.Helper()
	if failed, is := caller.(*failure); is {
		failed.T = t
		return failed
	}
	return t
}

// testOf returns the test that a world belongs to.
func testOf(t fakecluster.T) *testing.T {
	if failed, is := t.(*failure); is {
		return failed.test
	}
	return t.(*testing.T)
}

// jobsOf returns the Jobs that carry the record of a claim.
func (w *world) recordsOf(uid types.UID) []*batchv1.Job {
	return fakecluster.ListOf(w, func(job *batchv1.Job) bool {
		return slices.Contains(job.Finalizers, jobs.FinalizerRecord) && slices.Contains(jobs.UIDs(job), string(uid))
	})
}
