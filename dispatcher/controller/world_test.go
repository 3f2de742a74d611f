package controller_test

import (
	"os"
	"runtime/debug"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/events"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/controller"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/test/bubble"
	"github.com/flex-provisioner/flex-provisioner/test/logsink"
)

// TestMain lets garbage grow: a world is small, is thrown away as a whole, and a fifth of the time
// went into collecting. It also takes away what client-go does with the errors of watches. That
// waits, between the last error and the next, by clocks of different worlds, up to decades.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	utilruntime.ErrorHandlers = nil //nolint:reassign // the only way to be rid of its backoff
	os.Exit(m.Run())
}

// world is a fake cluster with dispatchers of some options.
type world struct {
	*fakecluster.Cluster
	options controller.Options
	metrics *registry // of the dispatcher that was made last
	// recorder is what dispatchers record events with; nil: the cluster's own.
	recorder func(events.EventRecorder) events.EventRecorder
}

// inWorld runs a test in a world of its own, in fake time. Whatever it leaves running fails it.
func inWorld(t *testing.T, test func(*world)) {
	t.Helper()
	w := &world{options: controller.Options{
		Dispatcher: config.Dispatcher{Provisioner: contract.ProvisionerName}, Namespaces: []string{fakecluster.ConfigNamespace}, Allowed: jobs.Allowances{},
		KubeAPI: "https://10.0.0.1", Workers: 4, AheadOfBinder: true,
	}}
	bubble.Test(t, w.newDispatcher, func(c *fakecluster.Cluster) {
		w.Cluster = c
		test(w)
	})
}

func (w *world) newDispatcher(p *fakecluster.Process) (fakecluster.Dispatcher, error) {
	recorder := p.Events
	if w.recorder != nil {
		recorder = w.recorder(recorder)
	}
	c, err := controller.New(p.Client, recorder, p.Clock, w.options)
	if err != nil {
		return nil, err
	}
	w.metrics = newRegistry()
	c.RegisterMetrics(w.metrics)
	return c, nil
}

// reconciles returns how often dispatchers have reconciled a claim, by the line that they log each
// time.
func (w *world) reconciles() int64 {
	w.T.Helper()
	n := logsink.Of(w.Log).Count("Carrying out action")
	if n == 0 {
		w.T.Error("no line says that a claim was reconciled: is the message another?")
	}
	return n
}
