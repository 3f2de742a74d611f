package controller_test

import (
	"testing"

	"k8s.io/component-base/metrics"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/controller"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// world is a fake cluster with dispatchers of some options.
type world struct {
	*fakecluster.Cluster
	options controller.Options
	metrics metrics.KubeRegistry // of the dispatcher that was made last
}

// inWorld runs a test in a world of its own, in fake time. Whatever it leaves running fails it.
func inWorld(t *testing.T, test func(*world)) {
	t.Helper()
	w := &world{options: controller.Options{
		Provisioner: contract.ProvisionerName, Namespaces: []string{fakecluster.ConfigNamespace}, Allowed: jobs.Allowances{},
		KubeAPI: "https://10.0.0.1", Workers: 4,
	}}
	fakecluster.Test(t, w.newDispatcher, func(c *fakecluster.Cluster) {
		w.Cluster = c
		test(w)
	})
}

func (w *world) newDispatcher(p *fakecluster.Process) (fakecluster.Dispatcher, error) {
	c, err := controller.New(p.Client, p.Events, p.Clock, w.options)
	if err != nil {
		return nil, err
	}
	w.metrics = metrics.NewKubeRegistry()
	c.RegisterMetrics(w.metrics)
	return c, nil
}
