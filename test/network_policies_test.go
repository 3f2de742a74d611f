package test

import (
	"net/netip"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// documentOf decodes the documents of a kind in a file below deploy.
func documentOf[T any](t *testing.T, kind string, path ...string) T {
	t.Helper()
	for text := range strings.SplitSeq(read(t, path...), "\n---\n") {
		var head metav1.TypeMeta
		if err := yaml.Unmarshal([]byte(text), &head); err != nil || head.Kind != kind {
			continue
		}
		var out T
		if err := yaml.UnmarshalStrict([]byte(text), &out); err != nil {
			t.Fatalf("%v: %v", path, err)
		}
		return out
	}
	t.Fatalf("%v has no %s", path, kind)
	panic("unreachable")
}

// The policy lets in what the Deployment listens on, and nothing else.
func TestNetworkPolicyOfTheDispatcherFitsItsDeployment(t *testing.T) {
	policy := documentOf[networkingv1.NetworkPolicy](t, "NetworkPolicy", "network-policies", "dispatcher.yaml")
	d := documentOf[appsv1.Deployment](t, "Deployment", "base", "dispatcher.yaml")
	if policy.Namespace != d.Namespace {
		t.Errorf("the policy is in the namespace %s, the dispatcher in %s", policy.Namespace, d.Namespace)
	}
	selector, err := metav1.LabelSelectorAsSelector(&policy.Spec.PodSelector)
	if err != nil || selector.Empty() || !selector.Matches(labels.Set(d.Spec.Template.Labels)) {
		t.Errorf("the policy selects %v, which the dispatcher's pods are not: %v", selector, err)
	}
	ports := d.Spec.Template.Spec.Containers[0].Ports
	in := policy.Spec.Ingress
	if len(ports) != 1 || len(in) != 1 || len(in[0].Ports) != 1 || in[0].Ports[0].Port.IntVal != ports[0].ContainerPort {
		t.Errorf("the policy lets in %+v, the dispatcher listens on %+v", in, ports)
	}
}

// The example for provisioning pods selects them by the label that the dispatcher gives them, and
// opens no port to every address.
func TestNetworkPolicyOfProvisionersOpensNothingToAll(t *testing.T) {
	policy := documentOf[networkingv1.NetworkPolicy](t, "NetworkPolicy", "network-policies", "provisioner.yaml")
	if s := policy.Spec.PodSelector.MatchExpressions; len(s) != 1 || s[0].Key != jobs.LabelVerb || s[0].Operator != metav1.LabelSelectorOpExists {
		t.Errorf("the policy selects %+v, not the pods with the label %s", s, jobs.LabelVerb)
	}
	if len(policy.Spec.PolicyTypes) != 2 || len(policy.Spec.Ingress) > 0 || len(policy.Spec.Egress) == 0 {
		t.Errorf("the policy is for %v and lets in %v", policy.Spec.PolicyTypes, policy.Spec.Ingress)
	}
	for _, out := range policy.Spec.Egress {
		if len(out.To) == 0 || len(out.Ports) == 0 {
			t.Errorf("a rule names no address or no port: %+v", out)
		}
		for _, to := range out.To {
			if to.IPBlock == nil {
				continue
			}
			if addresses, err := netip.ParsePrefix(to.IPBlock.CIDR); err != nil || addresses.Bits() < 24 {
				t.Errorf("the address range %s is too wide, or none: %v", to.IPBlock.CIDR, err)
			}
		}
	}
}
