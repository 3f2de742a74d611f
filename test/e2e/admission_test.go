//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// untilReported is how soon a claim must say why its Job does not start.
const untilReported = 30 * time.Second

// A Job whose pod is refused says so by FailedCreate, and the claim repeats it within 30 s: first a
// quota, then, when that is lifted, the next cause. The Job goes with the claim, and nothing is
// undone.
func TestClaimSaysThatItsPodIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "refused")
	w.started()
	quota, err := kube.CoreV1().ResourceQuotas(w.ns).Create(w.ctx(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "no-pods"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
	}, metav1.CreateOptions{})
	w.must(err, "create the quota")
	w.class(w.ns, w.oursAlone)
	w.config(w.ns, w.ns, scripted(deletes+offer, nil))
	claim := w.claim(w.ns, "data")
	started := time.Now()
	w.event(claim, "FailedCreate", "provision-"+string(claim.UID)+"-1", "exceeded quota: no-pods")
	within(t, "the quota was told", started, untilReported)

	lift := w.refusePods("pods of this namespace need a blessing")
	w.must(kube.CoreV1().ResourceQuotas(w.ns).Delete(w.ctx(), quota.Name, metav1.DeleteOptions{}), "lift the quota")
	// The Job controller tries again after up to twice the time that it has waited already.
	w.eventWithin(toBind, claim, "FailedCreate", "pods of this namespace need a blessing")
	equal(t, "events of two causes", len(w.notes(claim, "FailedCreate")), 2)

	w.deleteClaim(claim)
	w.claimGone(claim)
	lift()
	w.vanished(claim)
}

// What the dispatcher's --allow lets pass, the namespace's Pod Security may still refuse. When the
// config is corrected the claim is bound. An undo under the old config, whose pod would be refused
// as well, is not needed.
func TestClaimSaysThatPodSecurityRefusesItsPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "security")
	w.enforce("restricted")
	w.started("--allow=" + w.ns + "/host-path=/var/lib/flex-volumes")
	w.class(w.ns, w.oursAlone)
	cm := w.config(w.ns, w.ns, scripted(deletes+offer, nil, func(p *corev1.PodTemplateSpec) {
		p.Spec.Volumes = []corev1.Volume{{Name: "host", VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: "/var/lib/flex-volumes"},
		}}}
	}))
	claim := w.claim(w.ns, "data")
	started := time.Now()
	w.event(claim, "FailedCreate", `violates PodSecurity "restricted`, "hostPath")
	within(t, "Pod Security's refusal was told", started, untilReported)

	cm.Data = scripted(deletes+offer, nil)
	_, err := kube.CoreV1().ConfigMaps(w.ns).Update(w.ctx(), cm, metav1.UpdateOptions{})
	w.must(err, "correct the config")
	w.bound(claim)
}

// A ServiceAccount that does not exist, or lacks the label, is named; once it is there the claim is
// served.
func TestClaimSaysThatItsServiceAccountIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "missing")
	class, _ := w.service(scripted(deletes+offer, map[string]string{"service-account-name": w.ns}))
	claim := w.claim(class, "data")
	w.event(claim, "ServiceAccountRefused", w.ns, "does not exist", "lacks the label flex-provisioner.io/provisioner=true")

	accounts := kube.CoreV1().ServiceAccounts(ownNamespace)
	_, err := accounts.Create(w.ctx(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: w.ns}}, metav1.CreateOptions{})
	w.must(err, "create the ServiceAccount")
	w.remove(func() { w.gone(accounts.Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "ServiceAccount "+w.ns) })
	w.noJob(claim, 5*time.Second)

	label := []byte(`{"metadata": {"labels": {"flex-provisioner.io/provisioner": "true"}}}`)
	_, err = accounts.Patch(w.ctx(), w.ns, types.MergePatchType, label, metav1.PatchOptions{})
	w.must(err, "label the ServiceAccount")
	w.bound(claim)
}

// within: something took no longer than it may.
func within(t *testing.T, what string, since time.Time, most time.Duration) {
	t.Helper()
	if took := time.Since(since); took > most {
		t.Errorf("%s after %s, not within %s", what, took.Round(100*time.Millisecond), most)
	}
}

// enforce sets the Pod Security level of the test's namespace.
func (w *world) enforce(level string) {
	w.t.Helper()
	patch := fmt.Sprintf(`{"metadata": {"labels": {"pod-security.kubernetes.io/enforce": %q}}}`, level)
	_, err := kube.CoreV1().Namespaces().Patch(w.ctx(), w.ns, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	w.must(err, "set the namespace's level")
}

// refusePods lets an admission policy refuse every pod of the test's namespace.
func (w *world) refusePods(message string) (lift func()) {
	w.t.Helper()
	lift = w.policy(admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: creating("pods")},
		MatchConditions: []admissionregistrationv1.MatchCondition{{
			Name: "of-the-test", Expression: fmt.Sprintf("request.namespace == %q", w.ns),
		}},
		Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: message}},
	})
	pod := shell("try", "", "true", nil)
	w.eventually(toBind, "the API server to keep the policy", func(ctx context.Context) error {
		_, err := kube.CoreV1().Pods(w.ns).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), message) {
			return fmt.Errorf("the answer to a pod is: %w", err)
		}
		return nil
	})
	return lift
}
