//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// leaseLasts is how long a lease is valid after its holder has stopped renewing it.
const leaseLasts = 15 * time.Second

// A dispatcher that is asked to end releases its lease, so that another leads before the lease
// would have expired. A killed one cannot.
func TestLeaseIsReleasedOnExit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "lease")
	first := w.started()
	led := w.leads("")
	second := w.started()
	equal(t, "the leader while both run", w.holder(), led)

	began := time.Now()
	w.must(w.stop(first, syscall.SIGTERM), "the first dispatcher's end")
	next := w.leads(led)
	within(t, "another led", began, leaseLasts-3*time.Second)
	w.class(w.ns, w.oursAlone)
	w.config(w.ns, w.ns, scripted(deletes+offer, nil))
	claim := w.claim(w.ns, "data")
	w.bound(claim)
	w.deleteClaim(claim)
	w.vanished(claim)

	w.must(w.stop(second, syscall.SIGTERM), "the second dispatcher's end")
	equal(t, "who holds the lease when all have gone", w.holder(), "")
	third := w.started()
	last := w.leads(next)
	_ = w.stop(third, syscall.SIGKILL) // Wait's error names the signal
	equal(t, "who holds the lease of a dispatcher that was killed", w.holder(), last)
}

// holder is who holds the lease of the test's own dispatchers.
func (w *world) holder() string {
	w.t.Helper()
	lease, err := kube.CoordinationV1().Leases(w.ns).Get(w.ctx(), dispatcher, metav1.GetOptions{})
	w.must(err, "look at the lease")
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// leads waits until another than before holds the lease.
func (w *world) leads(before string) string {
	w.t.Helper()
	var now string
	w.eventually(toBind, "another than "+before+" to lead", func(ctx context.Context) error {
		lease, err := kube.CoordinationV1().Leases(w.ns).Get(ctx, dispatcher, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if h := lease.Spec.HolderIdentity; h == nil || *h == "" || *h == before {
			return fmt.Errorf("the holder is %v", h)
		}
		now = *lease.Spec.HolderIdentity
		return nil
	})
	return now
}

// Every replica answers the kubelet, and the one that leads counts what it has done, under the
// names that dashboards know.
func TestReplicasServeHealthChecksAndMetrics(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "numbers")
	class, _ := w.service(scripted(deletes+`[ "$FLEX_CLAIM_NAME" = good ] || exit 69`+"\n"+offer, map[string]string{"max-attempts": "1"}))
	bad := w.claim(class, "bad")
	w.failed(bad, 1, toBind)
	good := w.claim(class, "good")
	w.bound(good)
	w.deleteClaim(good)
	w.vanished(good)

	replicas, err := replicas(w.ctx())
	w.must(err, "look at the replicas")
	var metrics strings.Builder
	for _, pod := range replicas {
		url := "http://" + pod.Status.PodIP + ":8080"
		for _, path := range []string{"/healthz", "/readyz"} {
			said, err := page(w.ctx(), url+path)
			w.must(err, "ask "+pod.Name+" for "+path)
			equal(t, pod.Name+path, said, "ok\n")
		}
		said, err := page(w.ctx(), url+"/metrics")
		w.must(err, "ask "+pod.Name+" for its metrics")
		metrics.WriteString(said)
	}
	of := fmt.Sprintf("{class=%q", class)
	for _, series := range []string{
		"controller_persistentvolumeclaim_provision_total" + of + `,source=""} 1`,
		"controller_persistentvolumeclaim_provision_failed_total" + of + `,source=""} 1`,
		"controller_persistentvolumeclaim_provision_duration_seconds_count" + of + `,source=""} 1`,
		"controller_persistentvolume_delete_total" + of + "} 1",
		"controller_persistentvolume_delete_duration_seconds_count" + of + "} 1",
		"leader_election_master_status", "workqueue_depth",
	} {
		equal(t, "the metrics contain "+series, strings.Contains(metrics.String(), series), true)
	}
}

// A dispatcher whose ServiceAccount may not do all that it needs ends at once, and names every
// verb.
func TestMissingPermissionsAreNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "poor")
	w.account("poor")
	w.clusterRole(func(r *rbacv1.PolicyRule, resource string) {
		switch resource {
		case "persistentvolumes":
			r.Verbs = []string{"get", "list", "watch", "create"}
		case "storageclasses":
			r.Verbs = []string{"get", "list"}
		}
	})
	p := w.dispatch("--kubeconfig=" + w.kubeconfigOf("poor"))
	if err := w.waitFor(p); err == nil {
		t.Error("it ended without an error")
	}
	said := p.log.String()
	in := " in the namespace " + w.ns
	for _, words := range []string{
		"patch persistentvolumes in the cluster", "delete persistentvolumes in the cluster", "watch storageclasses.storage.k8s.io in the cluster",
		"create jobs.batch" + in, "watch configmaps" + in, "create leases.coordination.k8s.io" + in, "update leases.coordination.k8s.io flex-dispatcher" + in,
	} {
		contains(t, "what it said", said, words)
	}
	for _, words := range []string{"get persistentvolumes in", "list storageclasses", "patch persistentvolumeclaims"} {
		equal(t, "it names what it has: "+words, strings.Contains(said, words), false)
	}
}

// account makes a ServiceAccount in the test's namespace.
func (w *world) account(name string) {
	w.t.Helper()
	_, err := kube.CoreV1().ServiceAccounts(w.ns).Create(w.ctx(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	w.must(err, "create the ServiceAccount "+name)
	w.bindRole(rbacv1.Subject{Kind: "ServiceAccount", Name: name, Namespace: w.ns})
}

// clusterRole makes the test's copy of the dispatcher's role, with each rule of one resource
// changed.
func (w *world) clusterRole(change func(r *rbacv1.PolicyRule, resource string)) {
	w.t.Helper()
	roles := kube.RbacV1().ClusterRoles()
	shipped, err := roles.Get(w.ctx(), dispatcher, metav1.GetOptions{})
	w.must(err, "read the dispatcher's role")
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: w.ns}, Rules: shipped.Rules}
	for i := range role.Rules {
		change(&role.Rules[i], role.Rules[i].Resources[0])
	}
	_, err = roles.Create(w.ctx(), role, metav1.CreateOptions{})
	w.must(err, "create the poorer role")
	w.remove(func() { w.gone(roles.Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "ClusterRole "+w.ns) })
}

// bindRole gives a subject the test's own role.
func (w *world) bindRole(subject rbacv1.Subject) {
	w.t.Helper()
	bindings := kube.RbacV1().ClusterRoleBindings()
	_, err := bindings.Create(w.ctx(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: w.ns},
		Subjects:   []rbacv1.Subject{subject},
	}, metav1.CreateOptions{})
	w.must(err, "bind the test's role")
	w.remove(func() { w.gone(bindings.Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "ClusterRoleBinding "+w.ns) })
}

// kubeconfigOf writes a kubeconfig with a token of a ServiceAccount.
func (w *world) kubeconfigOf(account string) string {
	w.t.Helper()
	token, err := kube.CoreV1().ServiceAccounts(w.ns).CreateToken(w.ctx(), account, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	w.must(err, "ask for a token")
	config := clientcmdapi.NewConfig()
	config.Clusters["lab"] = &clientcmdapi.Cluster{
		Server: kubeConfig.Host, CertificateAuthority: kubeConfig.CAFile, CertificateAuthorityData: kubeConfig.CAData,
	}
	config.AuthInfos[account] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: account}
	config.CurrentContext = "lab"
	file := filepath.Join(w.t.TempDir(), "kubeconfig")
	w.must(clientcmd.WriteToFile(*config, file), "write the kubeconfig")
	return file
}

// Without the dispatcher, the Jobs in a deleted config namespace keep it from being removed by
// their finalizers. uninstall says what will stay behind, changes nothing without --yes, and with
// it removes the finalizers. Claims stay bound, and finalizers of another provisioner's dispatcher
// stay.
func TestUninstallUnblocksDeletionOfNamespace(t *testing.T) {
	t.Parallel()
	w, users := newWorld(t, "leaving"), newWorld(t, "users")
	p := w.started()
	w.class(w.ns, w.oursAlone)
	// One attempt: between two of them there are two records for a moment.
	w.config(w.ns, w.ns, scripted(deletes+`[ "$FLEX_CLAIM_NAME" = good ] || exit 69`+"\n"+offer, map[string]string{"max-attempts": "1"}))
	good, bad := users.claim(w.ns, "good"), users.claim(w.ns, "bad")
	users.retained(good)
	users.bound(good)
	users.failed(bad, 1, toBind)
	theirs := w.claimOfAnother()
	_ = w.stop(p, syscall.SIGKILL) // Wait's error names the signal

	w.must(kube.CoreV1().Namespaces().Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "delete the config namespace")
	said, err := w.uninstall()
	equal(t, "uninstall without --yes is an error", err != nil, true)
	record := w.onlyJob(bad, "provision")
	for _, words := range []string{
		"PersistentVolume pvc-" + string(good.UID), "the claim " + users.ns + "/good", "its volume remains in the storage",
		"Job " + w.ns + "/" + record.Name, "the claim " + users.ns + "/bad", "1 PersistentVolumes, 1 Jobs", "--yes",
	} {
		contains(t, "what uninstall said", said, words)
	}
	equal(t, "it names another's volume", strings.Contains(said, string(theirs.UID)), false)
	w.always(5*time.Second, "the namespace must hang on the record", func(ctx context.Context) error {
		_, err := kube.CoreV1().Namespaces().Get(ctx, w.ns, metav1.GetOptions{})
		return err
	})

	_, err = w.uninstall("--yes")
	w.must(err, "uninstall")
	w.eventually(toBind, "the namespace to go", func(ctx context.Context) error {
		ns, err := kube.CoreV1().Namespaces().Get(ctx, w.ns, metav1.GetOptions{})
		if err == nil {
			return fmt.Errorf("it is %s: %v", ns.Status.Phase, ns.Status.Conditions)
		}
		return known(err)
	})
	equal(t, "the good claim's phase", users.look(good).Status.Phase, corev1.ClaimBound)
	equal(t, "finalizers of its PV", fmt.Sprint(users.pv(good).Finalizers), "[kubernetes.io/pv-protection]")
	contains(t, "finalizers of another's PV", fmt.Sprint(w.pv(theirs).Finalizers), "flex-provisioner.io/storage")
}

// claimOfAnother is a bound claim of the Deployment's dispatchers.
func (w *world) claimOfAnother() *corev1.PersistentVolumeClaim {
	w.t.Helper()
	others := newWorld(w.t, "others")
	class, _ := others.service(scripted(deletes+offer, nil))
	claim := others.claim(class, "data")
	others.bound(claim)
	return claim
}

// uninstall runs the command for the test's own provisioner.
func (w *world) uninstall(flags ...string) (string, error) {
	w.t.Helper()
	out, err := exec.CommandContext(w.ctx(), dispatcherBinary, append([]string{
		"uninstall", "--kubeconfig=" + os.Getenv("KUBECONFIG"), "--provisioner-name=" + w.ownProvisioner(),
	}, flags...)...).CombinedOutput()
	return string(out), err
}
