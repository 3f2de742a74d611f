//go:build e2e && everyday

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// write is a kind of write that the cluster does not let the dispatcher do.
type write struct {
	group, resource string
	operation       admissionregistrationv1.OperationType
	// when is the verb whose run needs the write.
	when string
	// reason of the event that says so, by a policy and by a webhook that does not answer. Without
	// one, the claim is served all the same.
	byPolicy, byWebhook string
}

// isOurs is the condition, in CEL, that a write is of the test's own dispatcher, or the one by which
// a test finds that the condition is in force.
func (w *world) isOurs() string {
	return fmt.Sprintf("request.userInfo.username == %q && request.resource.resource != 'configmaps' || request.namespace == %q && request.name == 'in-force'",
		serviceAccount(w.ns, dispatcher), w.ns)
}

// rules match a write, and the one by which a test finds that they are in force.
func (x write) rules() []admissionregistrationv1.NamedRuleWithOperations {
	rules := append(created(x.group, x.resource), creating("configmaps")...)
	rules[0].Operations = []admissionregistrationv1.OperationType{x.operation}
	return rules
}

// untilInForce waits until the API server does what a policy or a webhook configuration says.
func (w *world) untilInForce(words string) {
	w.t.Helper()
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "in-force"}}
	w.eventually(toBind, "the API server to refuse writes", func(ctx context.Context) error {
		_, err := kube.CoreV1().ConfigMaps(w.ns).Create(ctx, cm, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil || !strings.Contains(err.Error(), words) {
			return fmt.Errorf("it answers %w", err)
		}
		return nil
	})
}

// denies lets a policy refuse a write of the test's own dispatcher.
func (w *world) denies(x write) (lift func()) {
	w.t.Helper()
	lift = w.policy(admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: x.rules()},
		MatchConditions:  []admissionregistrationv1.MatchCondition{{Name: "of-the-test", Expression: w.isOurs()}},
		Validations:      []admissionregistrationv1.Validation{{Expression: "false", Message: "it lacks a cost center"}},
	})
	w.untilInForce("it lacks a cost center")
	return lift
}

// asksNoOne lets a webhook decide about a write of the test's own dispatcher. No process listens
// where it should, as after the webhook's namespace was drained.
func (w *world) asksNoOne(x write) (lift func()) {
	w.t.Helper()
	webhooks := kube.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	var rules []admissionregistrationv1.RuleWithOperations
	for _, rule := range x.rules() {
		rules = append(rules, rule.RuleWithOperations)
	}
	_, err := webhooks.Create(w.ctx(), &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "costs.example.com", Rules: rules, FailurePolicy: new(admissionregistrationv1.Fail), SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			AdmissionReviewVersions: []string{"v1"}, TimeoutSeconds: new(int32(1)),
			ClientConfig:    admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/validate")},
			MatchConditions: []admissionregistrationv1.MatchCondition{{Name: "of-the-test", Expression: w.isOurs()}},
		}},
	}, metav1.CreateOptions{})
	w.must(err, "register the webhook")
	lift = func() { w.gone(webhooks.Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "webhook "+w.ns) }
	w.remove(lift)
	w.untilInForce("failed calling webhook")
	return lift
}

// A policy refuses one kind of the dispatcher's writes, or its webhook does not answer. The claim or
// its PV says which, and what is in the way. When that is out of the way, all ends as it should.
func TestAWriteThatTheClusterRefusesIsReportedAndTriedAgain(t *testing.T) {
	t.Parallel()
	create, update, remove := admissionregistrationv1.Create, admissionregistrationv1.Update, admissionregistrationv1.Delete
	for name, x := range map[string]write{
		"job":      {"batch", "jobs", create, "provision", "LaunchFailed", "WriteFailed"},
		"revision": {"apps", "controllerrevisions", create, "provision", "WriteRefused", "WriteFailed"},
		"gate":     {"", "pods", update, "provision", "WriteRefused", "WriteFailed"},
		"record":   {"batch", "jobs", update, "provision", "WriteRefused", "WriteFailed"},
		"pv":       {"", "persistentvolumes", create, "provision", "ProvisioningFailed", "WriteFailed"},
		"claim":    {"", "persistentvolumeclaims", update, "", "", ""},
		"event":    {"events.k8s.io", "events", create, "", "", ""},
		"undo":     {"batch", "jobs", create, "delete", "LaunchFailed", "WriteFailed"},
		"reclaim":  {"", "persistentvolumes", remove, "delete", "WriteRefused", "WriteFailed"},
		"release":  {"", "persistentvolumes", update, "delete", "WriteRefused", "WriteFailed"},
	} {
		t.Run(name+" by a policy", func(t *testing.T) {
			t.Parallel()
			newWorld(t, "denies-"+name).withstands(x, (*world).denies, x.byPolicy, "it lacks a cost center")
		})
		t.Run(name+" by a webhook", func(t *testing.T) {
			t.Parallel()
			newWorld(t, "webhook-"+name).withstands(x, (*world).asksNoOne, x.byWebhook, "failed calling webhook")
		})
	}
}

// withstands makes a claim, or deletes one, while a kind of write is refused.
func (w *world) withstands(x write, refuse func(*world, write) func(), reason, words string) {
	w.t.Helper()
	w.started()
	w.class(w.ns, w.oursAlone)
	w.config(w.ns, w.ns, scripted(deletes+offer, nil))
	var claim *corev1.PersistentVolumeClaim
	about := metav1.Object(nil)
	if x.when == "delete" {
		claim = w.claim(w.ns, "data")
		about = w.bound(claim)
	}
	lift := refuse(w, x)
	w.whenDone(lift)
	if x.when == "delete" {
		w.deleteClaim(claim)
	} else {
		claim = w.claim(w.ns, "data")
		about = claim
	}
	if reason == "" {
		w.eventually(toBind, "the claim to be bound", func(ctx context.Context) error { return isBound(ctx, claim) })
		lift()
		return
	}
	w.eventWithin(90*time.Second, about, reason, words)
	lift()
	if x.when == "delete" {
		w.vanished(claim)
		return
	}
	w.bound(claim)
}

// Finished Jobs are kept for some minutes, and count in a quota. The claim says that the quota is
// exhausted, and is served when a Job has expired.
func TestAClaimWaitsForAQuotaOfJobs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "quota")
	w.started()
	_, err := kube.CoreV1().ResourceQuotas(w.ns).Create(w.ctx(), &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "one-job"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/jobs.batch": resource.MustParse("1")}},
	}, metav1.CreateOptions{})
	w.must(err, "create the quota")
	w.class(w.ns, w.oursAlone)
	w.config(w.ns, w.ns, scripted(deletes+offer, nil))
	first := w.claim(w.ns, "first")
	w.bound(first)
	second := w.claim(w.ns, "second")
	w.event(second, "LaunchFailed", "exceeded quota: one-job")
	expired := w.onlyJob(first, "provision").Name
	w.must(kube.BatchV1().Jobs(w.ns).Delete(w.ctx(), expired, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}), "expire a Job")
	w.bound(second)
	w.must(kube.CoreV1().ResourceQuotas(w.ns).Delete(w.ctx(), "one-job", metav1.DeleteOptions{}), "lift the quota")
}

// After an upgrade the role of a provisioner lacks a verb that its new version needs: PVs stay
// Terminating. The PV says so, and goes when the role is complete.
func TestAPVSaysThatTheDispatcherMayNoLongerPatchIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "role")
	w.started()
	w.class(w.ns, w.oursAlone)
	w.config(w.ns, w.ns, scripted(deletes+offer, nil))
	claim := w.claim(w.ns, "data")
	pv := w.bound(claim)
	w.clusterRole(func(r *rbacv1.PolicyRule, resource string) {
		if resource == "persistentvolumes" {
			r.Verbs = []string{"get", "list", "watch", "create", "delete"}
		}
	})
	w.bindRole(w.ownSubject())
	bindings := kube.RbacV1().ClusterRoleBindings()
	whole, err := bindings.Get(w.ctx(), w.ns+"-dispatcher", metav1.GetOptions{})
	w.must(err, "read the binding of the dispatcher's role")
	poorer.Store(serviceAccount(w.ns, dispatcher), true)
	w.must(bindings.Delete(w.ctx(), whole.Name, metav1.DeleteOptions{}), "take the role away")
	time.Sleep(2 * time.Second) // the API server's authorizer forgets it
	w.deleteClaim(claim)
	w.eventWithin(90*time.Second, pv, "WriteRefused", "cannot patch resource", "persistentvolumes")
	whole.ResourceVersion, whole.UID = "", ""
	_, err = bindings.Create(w.ctx(), whole, metav1.CreateOptions{})
	w.must(err, "give the role back")
	w.vanished(claim)
}

// A claim whose attempts fail with another message each time has few events, and each attempt waits
// longer than the last.
func TestAClaimThatFailsForLongHasFewEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "events")
	class, _ := w.service(scripted(deletes+`echo "claim: request $RANDOM of $(date +%s) failed"; exit 69`, nil))
	claim := w.claim(class, "data")
	w.failed(claim, 6, 3*time.Minute)
	found, err := events(w.ctx(), w.ns, claim.UID)
	w.must(err, "look at the claim's events")
	own := 0
	for _, e := range found {
		if strings.HasPrefix(e.ReportingController, "flex-provisioner.io") || strings.HasPrefix(e.DeprecatedSource.Component, "flex-provisioner.io") {
			own++
		}
	}
	t.Logf("%d events of the dispatcher after 6 attempts, %d in all", own, len(found))
	equal(t, "the dispatcher's events are found", own > 0, true)
	if own > 20 {
		t.Error(errors.New("that is more than three for each attempt"))
	}
}
