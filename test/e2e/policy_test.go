//go:build e2e

package e2e

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// creating matches the creation of a resource of Kubernetes' core.
func creating(resource string) []admissionregistrationv1.NamedRuleWithOperations {
	return created("", resource)
}

func created(group, resource string) []admissionregistrationv1.NamedRuleWithOperations {
	return []admissionregistrationv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource}},
		},
	}}
}

// policy binds an admission policy named after the test's namespace. It is deleted with the test,
// or by lift.
func (w *world) policy(spec admissionregistrationv1.ValidatingAdmissionPolicySpec) (lift func()) {
	w.t.Helper()
	policies, bindings := kube.AdmissionregistrationV1().ValidatingAdmissionPolicies(), kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	lift = func() {
		w.gone(bindings.Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "policy binding "+w.ns)
		w.gone(policies.Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "policy "+w.ns)
	}
	w.remove(lift)
	_, err := policies.Create(w.ctx(), &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns}, Spec: spec,
	}, metav1.CreateOptions{})
	w.must(err, "create the policy")
	_, err = bindings.Create(w.ctx(), &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: w.ns, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}, metav1.CreateOptions{})
	w.must(err, "bind the policy")
	return lift
}

// Kubernetes checks the types in a policy after it was accepted, and only warns: a rule on a field
// that does not exist fails in every request.
func TestPoliciesOfThisProjectHaveNoTypeErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "types")
	w.eventually(30*time.Second, "the policies to be checked", func(ctx context.Context) error {
		list, err := kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().List(ctx, all)
		if err != nil {
			return err
		}
		for _, p := range list.Items {
			switch {
			case !strings.HasPrefix(p.Name, "flex-"):
			case p.Status.ObservedGeneration != p.Generation:
				err = errors.Join(err, errors.New(p.Name+" is not checked yet"))
			case p.Status.TypeChecking != nil:
				for _, warning := range p.Status.TypeChecking.ExpressionWarnings {
					t.Errorf("%s, %s: %s", p.Name, warning.FieldRef, warning.Warning)
				}
			}
		}
		return err
	})
}
