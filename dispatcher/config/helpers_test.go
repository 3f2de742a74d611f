package config_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// source returns a source without faults, with some changes.
func source(changes ...func(*config.Source)) config.Source {
	s := config.Source{
		Namespace: "flex-provisioner", Name: "gold", Class: "gold",
		Reclaim: "Retain", Binding: "Immediate",
		Data: map[string]string{"image": "localhost/gold:v1", "service-account-name": "gold"},
	}
	for _, change := range changes {
		change(&s)
	}
	return s
}

// set changes a key of the ConfigMap. An empty value removes it, and a script takes the place of
// the image.
func set(key, value string) func(*config.Source) {
	return func(s *config.Source) {
		if value == "" {
			delete(s.Data, key)
			return
		}
		s.Data[key] = value
		if key == "script" {
			delete(s.Data, "image")
		}
	}
}

func param(key, value string) func(*config.Source) {
	return func(s *config.Source) {
		if s.Parameters == nil {
			s.Parameters = map[string]string{}
		}
		s.Parameters[key] = value
	}
}

func reclaim(policy string) func(*config.Source) {
	return func(s *config.Source) { s.Reclaim = policy }
}

func binding(mode string) func(*config.Source) {
	return func(s *config.Source) { s.Binding = mode }
}

// dispatcher is what the tests parse for.
var dispatcher = config.Dispatcher{Provisioner: contract.ProvisionerName, ScriptImage: imageOfRelease}

func parse(t *testing.T, s config.Source) config.Config {
	t.Helper()
	cfg, faults := config.Parse(s, dispatcher)
	if len(faults) > 0 {
		t.Fatalf("faults: %v", faults.ToAggregate())
	}
	return cfg
}

func faultsOf(s config.Source) field.ErrorList {
	_, faults := config.Parse(s, dispatcher)
	return faults
}

// mustFault checks that there is one fault at each path of want, with its words, and no other.
func mustFault(t *testing.T, got field.ErrorList, want map[string][]string) {
	t.Helper()
	seen := map[string]int{}
	for _, f := range got {
		seen[f.Field]++
		words, expected := want[f.Field]
		if !expected {
			t.Errorf("unexpected fault: %v", f)
		}
		for _, w := range words {
			if !strings.Contains(f.Error(), w) {
				t.Errorf("the fault %q lacks %q", f.Error(), w)
			}
		}
	}
	for path := range want {
		if seen[path] != 1 {
			t.Errorf("%d faults at %s, want 1; all: %v", seen[path], path, got)
		}
	}
}

func sameVerbs(a []contract.Verb, b ...contract.Verb) bool { return slices.Equal(a, b) }

func configMap(name string, labels, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "flex-provisioner", Labels: labels},
		Data:       data,
	}
}

func class(name string, policy corev1.PersistentVolumeReclaimPolicy) *storagev1.StorageClass {
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: contract.ProvisionerName, ReclaimPolicy: &policy,
	}
}
