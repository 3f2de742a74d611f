//go:build e2e

package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The dispatcher has the permissions that are shipped, and two config namespaces. The RoleBinding
// of one is deleted, then that namespace itself: the classes of the other are served all the while;
// the claims and PVs of its own say what is missing, and are served when it exists again.
func TestConfigNamespaceThatGoesStopsOnlyItsOwnClasses(t *testing.T) {
	t.Parallel()
	team := newWorld(t, "team") // before the other: its namespace is deleted last
	w := newWorld(t, "served")
	kubeconfig := w.shippedAccount()
	w.bindConfigs(team.ns)
	w.started("--kubeconfig="+kubeconfig, "--config-namespaces="+team.ns)
	gold, silver := w.ns, w.ns+"-silver"
	w.class(gold, w.oursAlone)
	w.config(w.ns, gold, scripted(deletes+offer, nil))
	w.class(silver, w.oursAlone, parameter("flex-provisioner.io/config-namespace", team.ns))
	w.config(team.ns, silver, scripted(deletes+offer, nil))
	first := w.claim(silver, "first")
	pv := w.bound(first)

	w.must(kube.RbacV1().RoleBindings(team.ns).Delete(w.ctx(), configsRole, metav1.DeleteOptions{}), "delete the RoleBinding")
	w.bound(w.claim(gold, "at-once"))
	w.deleteClaim(first)
	second := w.notServed(silver, "second", team.ns)
	w.eventWithin(2*time.Minute, pv, "NamespaceNotServed", team.ns, "RoleBinding")
	w.bound(w.claim(gold, "meanwhile"))
	w.bindConfigs(team.ns)
	w.servedAgain(second)
	w.vanished(first)
	w.deleteClaim(second)
	w.vanished(second)

	w.deleteNamespace(team.ns)
	w.bound(w.claim(gold, "without-it"))
	third := w.notServed(silver, "third", team.ns)
	_, err := kube.CoreV1().Namespaces().Create(w.ctx(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: team.ns}}, metav1.CreateOptions{})
	w.must(err, "create the config namespace again")
	w.bindConfigs(team.ns)
	w.config(team.ns, silver, scripted(deletes+offer, nil))
	w.servedAgain(third)
}

// notServed makes a claim, which must say that its config's namespace is not served.
func (w *world) notServed(class, name, namespace string) *corev1.PersistentVolumeClaim {
	w.t.Helper()
	claim := w.claim(class, name)
	w.eventWithin(2*time.Minute, claim, "NamespaceNotServed", namespace, "RoleBinding")
	return claim
}

// servedAgain waits for a claim of a config namespace that is served again. That is noticed within
// a minute.
func (w *world) servedAgain(claim *corev1.PersistentVolumeClaim) {
	w.t.Helper()
	w.eventually(2*time.Minute, "the claim "+claim.Name+" to be bound", func(ctx context.Context) error { return succeeded(ctx, claim) })
}

func (w *world) deleteNamespace(name string) {
	w.t.Helper()
	w.must(kube.CoreV1().Namespaces().Delete(w.ctx(), name, metav1.DeleteOptions{}), "delete the namespace "+name)
	w.eventually(toBind, "the namespace "+name+" not to exist any more", func(ctx context.Context) error {
		_, err := kube.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			return errors.New("it does")
		}
		return known(err)
	})
}
