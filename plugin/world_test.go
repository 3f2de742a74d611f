package plugin_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/controller"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/options"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/plugin"
	"github.com/flex-provisioner/flex-provisioner/test/bubble"
)

// inWorld runs a test in a cluster in memory, with the shipped dispatcher.
func inWorld(t *testing.T, test func(*fakecluster.Cluster)) {
	t.Helper()
	bubble.Test(t, func(p *fakecluster.Process) (fakecluster.Dispatcher, error) {
		return controller.New(p.Client, p.Events, p.Clock, controller.Options{
			Dispatcher: config.Dispatcher{Provisioner: contract.ProvisionerName}, Namespaces: []string{fakecluster.ConfigNamespace}, Allowed: jobs.Allowances{},
			KubeAPI: "https://10.0.0.1", Workers: 4, AheadOfBinder: true,
		})
	}, func(c *fakecluster.Cluster) {
		fakecluster.Create(c, fakecluster.Admin, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: options.SystemNamespace, Name: options.Name}})
		test(c)
	})
}

// unbound is a label of a ServiceAccount that may not create PersistentVolumes.
const unbound = "unbound"

// unbind takes the permission to create PersistentVolumes from the account of the class gold.
func unbind(c *fakecluster.Cluster) {
	c.T.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: fakecluster.ConfigNamespace, Name: "writer"}}
	fakecluster.Update(c, fakecluster.Admin, account, func(a *corev1.ServiceAccount) { a.Labels[unbound] = "true" })
}

// asIs returns what the plugin says about something, and prints, of a cluster as it is. The
// dispatcher leads, or has never led.
func asIs[T any](c *fakecluster.Cluster, leads bool, look func(context.Context, *plugin.Dispatcher) (T, error)) T {
	c.T.Helper()
	if leads {
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: options.SystemNamespace, Name: options.Name}}
		fakecluster.Update(c, fakecluster.Admin, lease, func(l *coordinationv1.Lease) {
			l.Spec.HolderIdentity, l.Spec.RenewTime = new("flex-dispatcher-0"), &metav1.MicroTime{Time: time.Now()}
		})
	}
	client := c.Server.Client("plugin")
	client.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
		review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview).DeepCopy()
		account := strings.Split(strings.TrimPrefix(review.Spec.User, "system:serviceaccount:"), ":")
		review.Status.Allowed = fakecluster.Get[*corev1.ServiceAccount](c, account[0], account[1]).Labels[unbound] == ""
		return true, review, nil
	})
	d := &plugin.Dispatcher{
		Client: client, Clock: clock.RealClock{}, At: types.NamespacedName{Namespace: options.SystemNamespace, Name: options.Name},
		Serving: options.Serving{Provisioner: contract.ProvisionerName, Namespace: fakecluster.ConfigNamespace, AheadOfBinder: true},
	}
	ctx, stop := context.WithCancel(c.Context())
	defer d.Close()
	defer stop()
	if err := d.Open(ctx); err != nil {
		c.T.Fatal(err)
	}
	found, err := look(ctx, d)
	if err != nil {
		c.T.Fatal(err)
	}
	return found
}

// why returns what the plugin says about a claim.
func why(c *fakecluster.Cluster, uid types.UID) *plugin.Report {
	c.T.Helper()
	return asIs(c, true, func(ctx context.Context, d *plugin.Dispatcher) (*plugin.Report, error) { return d.Explain(ctx, uid) })
}

// lastLines returns the last lines of what is printed of a report, those of one text joined. Each
// that is printed fits a terminal.
func lastLines(c *fakecluster.Cluster, r *plugin.Report, n int) string {
	c.T.Helper()
	var out bytes.Buffer
	if err := plugin.Print(&out, time.Now(), r); err != nil {
		c.T.Fatal(err)
	}
	c.T.Logf("%s", out.String())
	mustFit(c.T, out.String())
	lines := strings.Split(strings.TrimSpace(joined(out.String())), "\n")
	return strings.Join(lines[max(len(lines)-n, 0):], "\n")
}
