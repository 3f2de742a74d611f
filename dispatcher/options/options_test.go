package options_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/options"
)

func deployment(containers ...corev1.Container) *appsv1.Deployment {
	d := &appsv1.Deployment{}
	d.Spec.Template.Spec.Containers = containers
	return d
}

// A sidecar may have flags of the same names.
func TestTheFlagsAreThoseOfTheDispatchersContainer(t *testing.T) {
	own := corev1.Container{Name: options.Name, Command: []string{"/flex-dispatcher", "--namespace=configs"}, Args: []string{"-v", "4", "--workers=3", "--config-namespaces=a,b"}}
	sidecar := corev1.Container{Name: "proxy", Args: []string{"--namespace=other", "--help", "--provisioner-name=none"}}
	for name, d := range map[string]*appsv1.Deployment{
		"alone":  deployment(own),
		"first":  deployment(own, sidecar),
		"second": deployment(sidecar, own),
	} {
		s, err := options.Of(d)
		if err != nil || s.Namespace != "configs" || s.Provisioner == "none" || len(s.Namespaces()) != 3 {
			t.Errorf("%s: got %+v, %v", name, s, err)
		}
	}
	if s, err := options.Of(deployment()); err != nil || s.Namespace != options.ConfigNamespace {
		t.Errorf("without a container: got %+v, %v", s, err)
	}
}

func TestTheLeaderElectionIsThatOfTheFlags(t *testing.T) {
	for want, args := range map[options.Election][]string{
		{}:                    {"--namespace=configs"},
		{Namespace: "leases"}: {"--leader-elect-resource-namespace=leases"},
		{Without: true}:       {"--leader-elect=false"},
	} {
		if got, err := options.ElectionOf(deployment(corev1.Container{Args: args})); err != nil || got != want {
			t.Errorf("%v: got %+v, %v", args, got, err)
		}
	}
}
