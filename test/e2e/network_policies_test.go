//go:build e2e

package e2e

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// The API server accepts the shipped NetworkPolicies, with the addresses of this lab, and stores
// every rule. They select the pods that they are meant for, and no others. The bridge of this lab
// enforces none, so what a plugin lets pass is not shown here.
func TestNetworkPoliciesSelectTheirPods(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "policies")
	w.must(kubectl(w.ctx(), "", "apply", "-k", "network-policies"), "apply the policies")
	w.remove(func() {
		if err := kubectl(w.ctx(), "", "delete", "--ignore-not-found", "-k", "network-policies"); err != nil {
			t.Errorf("delete the policies: %v", err)
		}
	})
	policies := map[string]networkingv1.NetworkPolicy{}
	list, err := kube.NetworkingV1().NetworkPolicies("").List(w.ctx(), all)
	w.must(err, "list the policies")
	for _, p := range list.Items {
		policies[p.Name] = p
	}

	class, _ := w.service(scripted(deletes+offer, nil))
	claim := w.claim(class, "data")
	w.bound(claim)
	run := w.onlyPod(w.onlyJob(claim, "provision"))
	var pods []corev1.Pod
	w.eventually(toBind, "the dispatchers to be there", func(ctx context.Context) (err error) {
		if pods, err = replicas(ctx); err == nil && len(pods) == 0 {
			err = errors.New("there are none")
		}
		return err
	})
	for _, pod := range append(pods, run) {
		isRun := pod.Name == run.Name
		equal(t, "the provisioners' policy selects "+pod.Name, w.selects(policies["flex-provisioner"], pod), isRun)
		equal(t, "the dispatcher's policy selects "+pod.Name, w.selects(policies["flex-dispatcher"], pod), !isRun)
	}
	ingress := policies["flex-dispatcher"].Spec.Ingress
	if len(ingress) != 1 || len(ingress[0].Ports) != 1 {
		t.Fatalf("the dispatcher's policy lets in %+v", ingress)
	}
	equal(t, "the port that is let in", ingress[0].Ports[0].Port.IntVal, pods[0].Spec.Containers[0].Ports[0].ContainerPort)
	equal(t, "what a provisioner reaches: names, the API server, the storage", len(policies["flex-provisioner"].Spec.Egress), 3)
	equal(t, "what reaches a provisioner", len(policies["flex-provisioner"].Spec.Ingress), 0)
}

// selects reports whether a policy selects a pod.
func (w *world) selects(policy networkingv1.NetworkPolicy, pod corev1.Pod) bool {
	w.t.Helper()
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	w.must(err, "read the selector of "+policy.Name)
	return policy.Namespace == pod.Namespace && selector.Matches(labels.Set(pod.Labels))
}
