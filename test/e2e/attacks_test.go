//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Claims that do not exist, after which pods and volumes of the attacks are named.
const (
	attackUID = "11111111-2222-3333-4444-777777777777"
	victimUID = "99999999-2222-3333-4444-777777777777"
)

// attack is one request as a stolen token would send it. An empty refusal says that it must pass.
type attack struct {
	what    string
	as      rest.ImpersonationConfig
	try     func(context.Context, kubernetes.Interface) error
	refusal string
	without answer // where the admission policies are taken away
}

// answer is what becomes of an attack: the zero value passes, any other is refused in these words.
// by is what refuses it without our policies.
type answer struct{ by, words string }

var (
	passes         = answer{}
	byRBAC         = answer{"RBAC", "cannot "}
	byAccount      = answer{"the admission of ServiceAccounts", "error looking up service account"}
	byNoSuchTarget = answer{"the controller of tokens, which deletes the Secret", "not found"}
)

func (a answer) String() string {
	switch {
	case a == passes:
		return "passes"
	case a.by == "":
		return "refused: " + a.words
	default:
		return "refused by " + a.by + ": " + a.words
	}
}

// is reports whether an attack was answered so.
func (a answer) is(err error) bool {
	if err == nil || a == passes {
		return err == nil && a == passes
	}
	return strings.Contains(err.Error(), a.words)
}

// expected returns what must become of the attack, with the policies or without them.
func (a attack) expected(policies bool) answer {
	switch {
	case a.refusal == "":
		return passes
	case policies:
		return answer{words: a.refusal}
	default:
		return a.without
	}
}

// account is a ServiceAccount as the API server knows it by a token; with the name of a pod, by one
// that is bound to the pod.
func account(namespace, name, pod string) rest.ImpersonationConfig {
	as := rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + namespace + ":" + name,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
	if pod != "" {
		as.Extra = map[string][]string{"authentication.kubernetes.io/pod-name": {pod}}
	}
	return as
}

// Accounts of the attacks. The Job controller creates every pod of a Job.
var (
	cinderPod     = account(ownNamespace, "cinder-provisioner", "provision-"+attackUID+"-1-abcde")
	cinderDelete  = account(ownNamespace, "cinder-provisioner", "delete-"+attackUID+"-1-abcde")
	cinderList    = account(ownNamespace, "cinder-provisioner", "list-"+attackUID+"-1-abcde")
	cinderUnbound = account(ownNamespace, "cinder-provisioner", "")
	directoryPod  = account(nodeNamespace, "directory-provisioner", "provision-"+attackUID+"-1-abcde")
	batchPod      = account(nodeNamespace, "file-server-provisioner", "provision-"+attackUID+"-1-abcde")
	theDispatcher = account(systemNamespace, dispatcher, "")
	jobController = account("kube-system", "job-controller", "")
	clusterAdmin  = rest.ImpersonationConfig{UserName: "an-administrator", Groups: []string{"system:masters", "system:authenticated"}}
)

// as returns a client for another user.
func (w *world) as(user rest.ImpersonationConfig) kubernetes.Interface {
	w.t.Helper()
	config := rest.CopyConfig(kubeConfig)
	config.Impersonate = user
	client, err := kubernetes.NewForConfig(config)
	w.must(err, "make a client for "+user.UserName)
	return client
}

// run tries every request, with the policies or without them, and prints the table.
func (w *world) run(attacks []attack, policies bool) {
	w.t.Helper()
	var out strings.Builder
	columns := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(columns, "attack\taccount\texpected\tgot")
	for _, a := range attacks {
		expected, err := a.expected(policies), a.try(w.ctx(), w.as(a.as))
		got := passes.String()
		if err != nil {
			got = err.Error()
		}
		if !expected.is(err) {
			w.t.Errorf("%s as %s: expected %s, got %s", a.what, a.as.UserName, expected, got)
		}
		_, _ = fmt.Fprintf(columns, "%s\t%s\t%s\t%s\n", a.what, strings.TrimPrefix(a.as.UserName, "system:serviceaccount:"), expected, got)
	}
	_ = columns.Flush()
	w.t.Logf("\n%s", out.String())
}

// createSecret makes a Secret in the namespace of configs, of a class that is named after the test.
func (w *world) createSecret(name string, kind corev1.SecretType, change ...func(*corev1.Secret)) func(context.Context, kubernetes.Interface) error {
	return w.createSecretIn(ownNamespace, name, kind, change...)
}

func (w *world) createSecretIn(namespace, name string, kind corev1.SecretType, change ...func(*corev1.Secret)) func(context.Context, kubernetes.Interface) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"storage-class": w.ns}}, Type: kind}
	for _, c := range change {
		c(secret)
	}
	return func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().Secrets(namespace).Create(ctx, secret, metav1.CreateOptions{})
		return err
	}
}

// removeSecrets deletes at the end what the attacks have made.
func (w *world) removeSecrets() {
	w.remove(func() {
		err := kube.CoreV1().Secrets(ownNamespace).DeleteCollection(w.ctx(), metav1.DeleteOptions{}, labelled("storage-class="+w.ns))
		w.gone(err, "Secrets of the attacks")
	})
}

func deleteSecret(name string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, client kubernetes.Interface) error {
		return client.CoreV1().Secrets(ownNamespace).Delete(ctx, name, metav1.DeleteOptions{})
	}
}

// tryDeleteSecret tries to delete a Secret, by a dry run.
func tryDeleteSecret(name string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, client kubernetes.Interface) error {
		return client.CoreV1().Secrets(ownNamespace).Delete(ctx, name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	}
}

func getSecret(name string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().Secrets(ownNamespace).Get(ctx, name, metav1.GetOptions{})
		return err
	}
}

// createToken makes a Secret that kube-controller-manager fills with a token of a ServiceAccount of
// the namespace, without an end.
func (w *world) createToken(name, account string) func(context.Context, kubernetes.Interface) error {
	return w.createSecret(name, corev1.SecretTypeServiceAccountToken, asksForToken(account))
}

// chapSecret has what the kubelet reads.
func chapSecret(secret *corev1.Secret) {
	secret.StringData = map[string]string{chapUser: "user", chapPassword: "5d1f0c-of-the-attack"}
}

func labelledFor(key string) func(*corev1.Secret) {
	return func(secret *corev1.Secret) { secret.Labels[key] = attackUID }
}

func ownedByNone(secret *corev1.Secret) { secret.OwnerReferences = ownedBy("Pod") }

// ownedBy is an owner that does not exist, so that the garbage collector deletes what names it.
func ownedBy(kind string) []metav1.OwnerReference {
	return []metav1.OwnerReference{{APIVersion: "v1", Kind: kind, Name: "none", UID: attackUID}}
}

func asksForToken(account string) func(*corev1.Secret) {
	return func(secret *corev1.Secret) {
		secret.Annotations = map[string]string{corev1.ServiceAccountNameKey: account}
	}
}

// A stolen token of a provisioner deletes no login and no Secret of another claim, and gets no token
// of another ServiceAccount. What its image needs passes.
func TestProvisionersTokenReachesOnlySecretsOfItsClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "steal-secrets")
	w.run(w.secretAttacks(), true)
}

// secretAttacks makes a login to a storage and the Secret of another claim, and returns the attacks
// on them. The first changes nothing.
func (w *world) secretAttacks() []attack {
	w.t.Helper()
	w.removeSecrets()
	login, victim, own := w.ns+"-login", "pvc-"+victimUID, "pvc-"+attackUID
	w.must(w.createSecret(login, corev1.SecretTypeOpaque, chapSecret)(w.ctx(), kube), "create a login")
	w.must(w.createSecret(victim, corev1.SecretTypeOpaque)(w.ctx(), kube), "create the Secret of another claim")
	const others, chap = "only the Secrets of its own claim", "kubernetes.io/iscsi-chap"
	generated := func(s *corev1.Secret) { s.GenerateName = own + "-" }
	return []attack{
		{"delete a login", cinderPod, tryDeleteSecret(login), others, passes},
		{"the same", cinderUnbound, tryDeleteSecret(login), "only a token that is bound to a provisioning pod", passes},
		{"read a login with the dispatcher's token", theDispatcher, getSecret(login), "cannot get resource", byRBAC},
		{"a token of another ServiceAccount", cinderPod, w.createToken(own+"-token", "default"), "no volume needs a Secret of the type", passes},
		{"the same, of another name", cinderPod, w.createToken(w.ns+"-token", "default"), others, passes},
		{"delete another claim's Secret", cinderPod, deleteSecret(victim), others, passes},
		{"a Secret with a generated name", cinderPod, w.createSecret("", chap, chapSecret, generated), "not a generated one", passes},
		{"the CHAP Secret of its claim", cinderPod, w.createSecret(own, chap, chapSecret), "", passes},
		{"its delete", cinderDelete, deleteSecret(own), "", passes},
		{"delete a login by a list", cinderList, tryDeleteSecret(login), others, passes},
		{"a Secret by a list", cinderList, w.createSecret(own+"-list", corev1.SecretTypeOpaque), others, passes},
		{"a Secret without a type", cinderPod, w.createSecret(own, ""), "", passes},
		{"a release of Helm", cinderPod, w.createSecret(own+"-1", "helm.sh/release.v1", chapSecret), "no volume needs a Secret of the type", passes},
		{"a Secret with labels of Helm", cinderPod, w.createSecret(own+"-2", corev1.SecretTypeOpaque, labelledFor("owner")), "no labels but", passes},
		{"a Secret that is to be copied", cinderPod, w.createSecret(own+"-3", corev1.SecretTypeOpaque, asksForToken("*")), "no annotations", passes},
		{"a Secret with an owner", cinderPod, w.createSecret(own+"-4", corev1.SecretTypeOpaque, ownedByNone), "no owner", passes},
		{"the Secret of a FlexVolume", cinderPod, w.createSecret(own+"-5", flexDriver, labelledFor("flex-provisioner.io/claim-uid")), "", passes},
		{"the same, of a driver that is not listed", cinderPod, w.createSecret(own+"-6", "example.com/driver"), "an administrator lists the names", passes},
	}
}
