//go:build e2e && long

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// untilEnforced is how soon the API server acts on policies that were bound or taken away.
const untilEnforced = time.Minute

// A policy that refuses what would fail anyway guards nothing. So every attack is tried without the
// policies, too, and passes there, unless a part of Kubernetes that the table names refuses it. No
// other test runs: the policies are those of all.
func TestAttacksSucceedWithoutThePolicies(t *testing.T) {
	w := newWorld(t, "bare")
	dry := slices.Concat(nodePodAttacks(), gateAttacks(), w.servingAttacks(), w.recordAttacks(), w.revisionAttacks(), w.otherPodAttacks(), w.pvAttacks(), w.markAttacks(), w.becomingAttacks())
	secrets, sequences, targets := w.secretAttacks(), w.sequenceAttacks(), w.patchable()
	var guarded []map[string]verdict
	for _, x := range targets {
		guarded = append(guarded, w.verdicts(x))
	}
	w.withoutPolicies(append(dry, secrets[0]))
	w.run(slices.Concat(secrets, dry, sequences, w.systemAttacks()), false)
	for i, x := range targets {
		w.passWithoutPolicies(x, guarded[i])
	}
}

// passWithoutPolicies tries every field of an object again: what our policies refused is written
// now, and what Kubernetes itself refused is not.
func (w *world) passWithoutPolicies(x target, guarded map[string]verdict) {
	w.t.Helper()
	for path, now := range w.verdicts(x) {
		was := guarded[path]
		if was == refusedByPolicy {
			was = changesIt
		}
		if now != was {
			w.t.Errorf("%s: %s %s without the policies, and %s with them", x.name, path, now, guarded[path])
		}
	}
}

// withoutPolicies takes the bindings of our policies away until the test's end. A test that is
// killed leaves that to hack/deploy.sh, which applies them. The probes are attacks that change
// nothing.
func (w *world) withoutPolicies(probes []attack) {
	w.t.Helper()
	bindings := kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings()
	list, err := bindings.List(w.ctx(), all)
	w.must(err, "list the bindings of policies")
	ours := slices.DeleteFunc(list.Items, func(b admissionregistrationv1.ValidatingAdmissionPolicyBinding) bool {
		return !strings.HasPrefix(b.Spec.PolicyName, "flex-")
	})
	if len(ours) < 9 {
		w.t.Fatalf("only %d policies are bound: have their names changed?", len(ours))
	}
	w.eventually(untilEnforced, "the policies to be enforced", w.answered(probes, true))
	w.whenDone(func() { w.putBack(ours, probes) })
	for _, b := range ours {
		w.must(bindings.Delete(w.ctx(), b.Name, metav1.DeleteOptions{}), "take away the policy "+b.Spec.PolicyName)
	}
	w.eventually(untilEnforced, "the policies not to be enforced any more", w.answered(probes, false))
}

// putBack binds the policies again, and waits until they are enforced.
func (w *world) putBack(bindings []admissionregistrationv1.ValidatingAdmissionPolicyBinding, probes []attack) {
	w.t.Helper()
	for _, b := range bindings {
		again := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
			ObjectMeta: metav1.ObjectMeta{Name: b.Name, Labels: b.Labels, Annotations: b.Annotations}, Spec: b.Spec,
		}
		err := poll(w.ctx(), toBind, func(ctx context.Context) error {
			_, err := kube.AdmissionregistrationV1().ValidatingAdmissionPolicyBindings().Create(ctx, again, metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return err
		})
		if err != nil {
			w.t.Errorf("put back the policy %s: %v", b.Spec.PolicyName, err)
		}
	}
	w.eventually(untilEnforced, "the policies to be enforced again", w.answered(probes, true))
}

// answered reports an error unless every attack is answered as it must be, with the policies or
// without them.
func (w *world) answered(attacks []attack, policies bool) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, a := range attacks {
			if err := a.try(ctx, w.as(a.as)); !a.expected(policies).is(err) {
				return errors.Join(fmt.Errorf("%s as %s: expected %s", a.what, a.as.UserName, a.expected(policies)), err)
			}
		}
		return nil
	}
}
