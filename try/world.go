package try

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/controller"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/try/kubeapi"
)

// node is the name of the world's only node, and noImage that of an image that it does not have.
const (
	node    = "node1"
	noImage = "none"
	workers = 4
)

// world is a Kubernetes in memory, with the shipped dispatcher, whose containers are processes.
type world struct {
	*fakecluster.Cluster

	trial   *Trial
	clock   steppedClock
	api     *kubeapi.Server
	allowed jobs.Allowances
	uid     string // of the cluster

	// working is how many containers are at work: time passes as it does then.
	working atomic.Int64
	stop    context.CancelFunc
	failed  func() // ends the test of the promises
	driven  chan struct{}
	broken  chan error // why the world goes on no more

	mu sync.Mutex
	// listed is the output of the last run of list, and last is how long the last run of a verb took.
	listed   string
	last     map[contract.Verb]time.Duration
	policies map[string]admissionregistrationv1.Validation // by name
	events   int                                           // that were shown
	shown    int                                           // changes
}

// newWorld returns a world in which the trial's class is served. It calls failed when it cannot go on.
func newWorld(ctx context.Context, t *Trial, failed func()) (*world, error) {
	klog.LogToStderr(false) // client-go's own lines
	klog.SetOutput(io.Discard)
	w := &world{
		trial: t, clock: newClock(), failed: failed,
		driven: make(chan struct{}), broken: make(chan error, 1), last: map[contract.Verb]time.Duration{}, policies: map[string]admissionregistrationv1.Validation{},
	}
	var err error
	if w.allowed, err = t.allowances(); err != nil {
		return nil, err
	}
	ctx, w.stop = context.WithCancel(context.WithoutCancel(ctx))
	w.Cluster = fakecluster.New(witness{ctx}, w.clock, nil, w.newDispatcher)
	w.api, err = kubeapi.New(w.Server.Client("image"), t.Config.Source.Namespace)
	if err != nil {
		return nil, err
	}
	if err := w.protected(w.setUp); err != nil {
		return nil, err
	}
	go w.drive(ctx)
	return w, w.protected(func() { w.Start() }) //nolint:contextcheck // it has that of the witness
}

func (w *world) newDispatcher(p *fakecluster.Process) (fakecluster.Dispatcher, error) {
	serving := w.trial.Serving
	serving.ConfigNamespaces = append(slices.Clone(serving.ConfigNamespaces), w.trial.Config.Source.Namespace)
	return controller.New(p.Client, p.Events, p.Clock, controller.Options{
		Dispatcher: serving.Dispatcher(), Namespaces: serving.Namespaces(), Allowed: w.allowed, KubeAPI: w.api.URL(),
		Workers: workers, AheadOfBinder: true, ClusterUID: w.uid,
	})
}

// setUp creates what the files have, and a node that the class's pods may go to.
func (w *world) setUp() {
	w.uid = string(uuid.NewUUID())
	w.Server.NewUID = uuid.NewUUID // a storage may have volumes of an earlier trial
	labels := map[string]string{corev1.LabelHostname: node, corev1.LabelOSStable: "linux"}
	maps.Copy(labels, w.trial.Config.Scheduling.NodeSelector)
	fakecluster.Create(w, fakecluster.Admin, &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: node, Labels: labels},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	})
	w.Choices = []string{node}
	fakecluster.Create(w, fakecluster.Admin, w.trial.Class)
	for _, cm := range w.trial.Configs {
		fakecluster.Create(w, fakecluster.Admin, cm)
	}
	for _, secret := range w.trial.Secrets {
		fakecluster.Create(w, fakecluster.Admin, secret)
	}
	for _, account := range w.trial.Accounts {
		fakecluster.Create(w, fakecluster.Admin, account)
	}
	if account := w.trial.Account(); account != nil {
		fakecluster.Create(w, fakecluster.Admin, account)
	}
	w.Images[noImage] = fakecluster.Image{Rejected: "NodeAffinity"}
	w.Images[w.trial.Config.Image] = fakecluster.Image{Program: w.program}
	w.Server.Refuse(w.refuse)
}

// drive lets the cluster go on, and its time pass, until ctx ends.
func (w *world) drive(ctx context.Context) {
	defer close(w.driven)
	for ctx.Err() == nil {
		moved, began := false, time.Now()
		err := w.protected(func() { moved = w.MoveAll() }) //nolint:contextcheck // as above
		if err != nil {                                    // what waits for the cluster waits in vain, and has to see that
			w.broken <- err
			w.failed()
			w.pass(ctx)
			return
		}
		w.show()
		if moved {
			continue
		}
		idle := false
		select {
		case <-ctx.Done():
		case <-w.Server.Written():
		case <-time.After(tick):
			idle = w.working.Load() == 0
		}
		if passed := time.Since(began); idle {
			w.clock.Step(skipped)
		} else {
			w.clock.Step(passed)
		}
	}
}

// pass lets time pass in a cluster in which nothing moves any more.
func (w *world) pass(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(tick):
			w.clock.Step(skipped)
		}
	}
}

// close ends the world.
func (w *world) close() {
	w.stop()
	<-w.driven
	w.Stop()
	w.api.Close()
}

// failure returns why the world went on no more, or nil.
func (w *world) failure() error {
	select {
	case err := <-w.broken:
		return err
	default:
		return nil
	}
}

// protected does something in the cluster, and returns its failure.
func (*world) protected(do func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			fatal, ok := p.(fatalError)
			if !ok {
				panic(p)
			}
			err = fatal
		}
	}()
	do()
	return nil
}

// fatalError is a failure of the cluster in memory.
type fatalError struct{ error }

// witness is what the cluster in memory reports its failures to.
type witness struct{ ctx context.Context } //nolint:containedctx // that of a test, whose part it plays

func (witness) Helper()                           {}
func (witness) Logf(string, ...any)               {}
func (witness) Failed() bool                      { return false }
func (w witness) Context() context.Context        { return w.ctx }
func (witness) Error(args ...any)                 { panic(fatalError{fmt.Errorf("%s", fmt.Sprint(args...))}) }
func (witness) Errorf(format string, args ...any) { panic(fatalError{fmt.Errorf(format, args...)}) }
func (witness) Fatal(args ...any)                 { panic(fatalError{fmt.Errorf("%s", fmt.Sprint(args...))}) }
func (witness) Fatalf(format string, args ...any) { panic(fatalError{fmt.Errorf(format, args...)}) }
