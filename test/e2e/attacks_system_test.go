//go:build e2e

package e2e

import (
	"context"
	"errors"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// requestToken asks for a token of the dispatcher.
func requestToken(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.CoreV1().ServiceAccounts(systemNamespace).CreateToken(ctx, dispatcher, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	return err
}

// takeLease names another leader.
func takeLease(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.CoordinationV1().Leases(systemNamespace).Patch(ctx, dispatcher, types.MergePatchType,
		[]byte(`{"spec":{"holderIdentity":"attack"}}`), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// Whoever is in the namespace of configs gets neither the dispatcher's ServiceAccount nor a token
// of it: not by a pod, a Job or a Secret there, and not by any request to the dispatcher's own
// namespace. The dispatcher's token makes no other one there.
func TestNothingInAConfigNamespaceBecomesTheDispatcher(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "impostor")
	w.removeSecrets()
	w.run(w.systemAttacks(), true)
	w.noTokenOfTheDispatcher()
	w.noJobAsTheDispatcher()
}

// systemAttacks returns the attempts to become the dispatcher. Kubernetes itself refuses them: no
// policy is needed.
func (w *world) systemAttacks() []attack {
	const token, foreign = corev1.SecretTypeServiceAccountToken, "cannot create resource"
	asDispatcher := func(p *corev1.PodTemplateSpec) { p.Spec.ServiceAccountName = dispatcher }
	return []attack{
		{"a pod with the dispatcher's account", jobController, createPodIn(ownNamespace, asDispatcher), "error looking up service account " + ownNamespace, byAccount},
		{"the same, on a node's directories", jobController, createPod(asDispatcher), "error looking up service account " + nodeNamespace, byAccount},
		{"a Secret for its token", cinderPod, w.createToken("pvc-"+attackUID+"-dispatcher", dispatcher), "no volume needs a Secret of the type", byNoSuchTarget},
		{"the same, beside it", cinderPod, w.createSecretIn(systemNamespace, "pvc-"+attackUID, token, asksForToken(dispatcher)), foreign, byRBAC},
		{"its token on request", cinderPod, requestToken, foreign, byRBAC},
		{"the same", directoryPod, requestToken, foreign, byRBAC},
		{"the same", theDispatcher, requestToken, foreign, byRBAC},
		{"a Job beside it", theDispatcher, createJobIn(systemNamespace, asDispatcher), foreign, byRBAC},
		{"its lease", cinderPod, takeLease, "cannot patch resource", byRBAC},
	}
}

// noTokenOfTheDispatcher makes a Secret for its token in the namespace of configs, as an
// administrator, whom no policy refuses. It is deleted, since no such ServiceAccount is there.
func (w *world) noTokenOfTheDispatcher() {
	w.t.Helper()
	create := w.createSecret(w.ns, corev1.SecretTypeServiceAccountToken, asksForToken(dispatcher))
	w.must(create(w.ctx(), kube), "create a Secret for a token")
	w.eventually(30*time.Second, "the Secret for a token to be deleted", func(ctx context.Context) error {
		secret, err := kube.CoreV1().Secrets(ownNamespace).Get(ctx, w.ns, metav1.GetOptions{})
		if err != nil {
			return known(err)
		}
		if len(secret.Data[corev1.ServiceAccountTokenKey]) > 0 {
			w.t.Error("a token of the dispatcher is in the namespace of configs")
		}
		return errors.New("it is there")
	})
}

// noJobAsTheDispatcher lets a config name the dispatcher's ServiceAccount, as whoever edits
// ConfigMaps can.
func (w *world) noJobAsTheDispatcher() {
	w.t.Helper()
	class, _ := w.service(scripted(deletes+offer, map[string]string{"service-account-name": dispatcher}))
	claim := w.claim(class, "data")
	w.event(claim, "ServiceAccountRefused", dispatcher, "does not exist in that namespace")
	w.noJob(claim, 3*time.Second)
}
