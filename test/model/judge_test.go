package model

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/resolve"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/run"
)

// judge decides about a View, as decide.Decide does.
type judge func(decide.View) decide.Action

// events answers the one question that observe asks the API server itself: why a Job has no pod.
type (
	events     struct{ kubernetes.Interface }
	eventsCore struct{ typedcorev1.CoreV1Interface }
	eventsOf   struct{ typedcorev1.EventInterface }
)

func (events) CoreV1() typedcorev1.CoreV1Interface          { return eventsCore{} }
func (eventsCore) Events(string) typedcorev1.EventInterface { return eventsOf{} }
func (eventsOf) List(context.Context, metav1.ListOptions) (*corev1.EventList, error) {
	return &corev1.EventList{Items: []corev1.Event{{Reason: "FailedCreate", Message: "exceeded quota"}}}, nil
}

// look observes what the caches show, or what is read live, by the shipped observe, and decides, by
// the shipped decide. It returns also under which version of the config a delete would be launched.
func (w *world) look(cached, read *view, hasSlot bool) (seen decide.View, action decide.Action, under uint8) {
	caches := w.caches(cached)
	reader := caches.Cached()
	if *read != *cached {
		reader = w.caches(read).Cached()
	}
	clock := clocktesting.NewFakeClock(now)
	b := &observe.Observer{Clock: clock, AheadOfBinder: w.ahead, Resolver: resolve.Resolver{
		Caches: caches, Dispatcher: config.Dispatcher{Provisioner: contract.ProvisionerName}, Namespace: namespace, Judged: w.judged,
	}}
	o, err := b.Observe(context.Background(), reader, uid, observe.Hint{})
	if err != nil {
		panic(err)
	}
	if o.View.Delete.Revision == w.config(1).Source.Revision() {
		under = 1
	}
	if hasSlot {
		o.View = o.View.WithSlot()
	}
	return o.View, w.first(w.judge()(o.View), o), under
}

// first returns what the leader does first: what the loop of the claim writes, or what that of a
// Job does.
func (w *world) first(action decide.Action, o *observe.Observation) decide.Action {
	freed := w.freed(o)
	if release, releases := action.(decide.ReleaseRecord); freed != nil && (!decide.IsWrite(action) || releases && release.Run.Name == freed.Name) {
		return freesPod{run: *freed}
	}
	return action
}

// freed returns the run whose pod is to be released, as the shipped run says, or nil.
func (w *world) freed(o *observe.Observation) *decide.Run {
	frees := run.IsToBeFreed
	if w.frees != nil {
		frees = w.frees
	}
	for i := range o.View.Runs {
		if r := &o.View.Runs[i]; frees(o.Jobs[r.Name], o.Pods[r.Name]) {
			return r
		}
	}
	return nil
}

func (w *world) caches(shows *view) *cluster.Caches {
	caches, err := cluster.NewStatic(events{}, []string{namespace}, w.objects(shows)...)
	if err != nil {
		panic(err)
	}
	return caches
}

func (w *world) judge() judge {
	if w.wrap == nil {
		return decide.Decide
	}
	return w.wrap(decide.Decide)
}
