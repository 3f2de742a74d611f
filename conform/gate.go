package conform

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// refusedBy is in what the API server says of a PersistentVolume that the run's policy refuses.
const refusedBy = "kubectl flex conform refuses this PersistentVolume for a moment"

// takesEffect is how long the API server may need for a policy.
const takesEffect = 30 * time.Second

// closeGate refuses the PersistentVolumes of this run's claims, so that a run creates a volume, and
// the dispatcher has to run the image again. The policy names the run's namespace: it can affect no
// other claim, also if it is left behind.
func (r *Run) closeGate(ctx context.Context) error {
	name, policies := r.namespace.Name, r.Client.AdmissionregistrationV1()
	r.gated = true
	_, err := policies.ValidatingAdmissionPolicies().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: r.owned(name),
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: new(admissionregistrationv1.Ignore),
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"persistentvolumes"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: fmt.Sprintf("!has(object.spec.claimRef) || !has(object.spec.claimRef.namespace) || object.spec.claimRef.namespace != '%s'", name),
				Message:    refusedBy,
				Reason:     new(r.refusal()),
			}},
		},
	}, metav1.CreateOptions{})
	if err == nil {
		_, err = policies.ValidatingAdmissionPolicyBindings().Create(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: r.owned(name),
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("refuse the PersistentVolumes of this test for a moment: %w", err)
	}
	return r.until(ctx, takesEffect, "the API server to use the policy "+name, func(ctx context.Context) (bool, error) { return r.isClosed(ctx) })
}

// refusal returns a reason that has the image run again: an image takes most others for lasting, and deletes
// its volume again, and the dispatcher tries it again without the image.
func (r *Run) refusal() metav1.StatusReason {
	if r.Config.Writer == config.DispatcherWrites {
		return metav1.StatusReasonForbidden
	}
	return metav1.StatusReasonRequestEntityTooLarge
}

// openGate deletes the policy, if there is one.
func (r *Run) openGate(ctx context.Context) error {
	if !r.gated {
		return nil
	}
	name, policies := r.namespace.Name, r.Client.AdmissionregistrationV1()
	err := errors.Join(
		r.deleteOwn(policies.ValidatingAdmissionPolicyBindings().Delete(ctx, name, metav1.DeleteOptions{}), "the binding of the policy "+name),
		r.deleteOwn(policies.ValidatingAdmissionPolicies().Delete(ctx, name, metav1.DeleteOptions{}), "the policy "+name),
	)
	if err != nil {
		return err
	}
	return r.until(ctx, takesEffect, "the API server to drop the policy "+name, func(ctx context.Context) (bool, error) {
		closed, err := r.isClosed(ctx)
		r.gated = closed || err != nil
		return !r.gated, err
	})
}

// isClosed reports whether the API server refuses a PersistentVolume of this run.
func (r *Run) isClosed(ctx context.Context) (bool, error) {
	_, err := r.Client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: r.namespace.Name, Labels: r.labels()},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: r.Size}, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			ClaimRef:               &corev1.ObjectReference{APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: r.namespace.Name, Name: "none"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "server.example", Path: "/"}},
		},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil && strings.Contains(err.Error(), refusedBy) {
		return true, nil
	}
	return false, err
}

// refused returns a claim for which a run has created a volume, and could not write its
// PersistentVolume. The gate is closed.
func (t *trial) refused(ctx context.Context) (*claim, ran, error) {
	if err := t.closeGate(ctx); err != nil {
		return nil, ran{}, err
	}
	c, err := t.claim(ctx)
	if err != nil {
		return c, ran{}, err
	}
	first, err := t.firstRun(ctx, c, contract.Provision, func(run ran) bool { return run.outcome != nil })
	if err != nil {
		return c, first, err
	}
	// Of several API servers one may learn of the policy later than the one that was asked.
	_, err = t.Client.CoreV1().PersistentVolumes().Get(ctx, contract.PVName(string(c.UID)), metav1.GetOptions{})
	switch {
	case err == nil:
		return c, first, notTested("an API server did not use the policy %s in time, and accepted the PersistentVolume. Remedy: test the promise again", t.namespace.Name)
	case !apierrors.IsNotFound(err):
		return c, first, err
	case first.outcome.Verdict.MadeNothing():
		return c, first, t.whyMadeNothing(ctx, c, first)
	default:
		return c, first, nil
	}
}

// whyMadeNothing returns why a test cannot continue after a run whose PersistentVolume was refused, and
// which promises that nothing was created. It may have deleted the volume again.
func (t *trial) whyMadeNothing(ctx context.Context, c *claim, first ran) error {
	volumes, err := t.volumesOf(ctx, c.UID)
	if err != nil {
		return err
	}
	if len(volumes) > 0 {
		return brokenBy(first, fmt.Sprintf("its PersistentVolume was refused, and it ended with %s, which promises that nothing was created; the storage lists the volume", first.outcome))
	}
	return notTested("a run whose PersistentVolume is refused ends with %s, and leaves no volume", first.outcome)
}
