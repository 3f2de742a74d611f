//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Whoever has the dispatcher's token creates pods in the namespaces of configs. In one that an
// administrator had added without a Pod Security level, such a pod was root of its node. The shipped
// policy is tried on a namespace of the test's own.
func TestNoPodRunsInANamespaceOfConfigsWithoutALevel(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "level")
	shipped, err := kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(w.ctx(), "flex-provisioner-level", metav1.GetOptions{})
	w.must(err, "get the policy")
	spec := shipped.Spec.DeepCopy()
	names := &spec.MatchConstraints.NamespaceSelector.MatchExpressions[0].Values
	if !slices.Contains(*names, "flex-provisioner") || !slices.Contains(*names, nodeNamespace) {
		t.Errorf("the policy is for the namespaces %q", *names)
	}
	*names = []string{w.ns}
	w.policy(*spec)
	try := func(ctx context.Context) error {
		_, err := kube.CoreV1().Pods(w.ns).Create(ctx, shell("try", "", "true", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	w.eventually(untilLevel, "the API server to refuse a pod", func(ctx context.Context) error {
		if err := try(ctx); err == nil || !strings.Contains(err.Error(), "enforce=restricted") {
			return fmt.Errorf("the answer to a pod is: %w", err)
		}
		return nil
	})
	w.enforce("privileged") // chosen by an administrator
	w.eventually(untilLevel, "the API server to accept it", try)
}

// untilLevel is how soon the API server acts on a policy, and on a label of a namespace.
const untilLevel = 30 * time.Second
