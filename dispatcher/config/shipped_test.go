package config_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// documents strictly decodes every document of a kind in some YAML files.
func documents[T any](t *testing.T, kind string, files ...string) []T {
	t.Helper()
	var out []T
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for doc := range bytes.SplitSeq(data, []byte("\n---\n")) {
			var head struct {
				Kind string `json:"kind"`
			}
			if err := yaml.Unmarshal(doc, &head); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if head.Kind != kind {
				continue
			}
			var one T
			if err := yaml.UnmarshalStrict(doc, &one); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			out = append(out, one)
		}
	}
	return out
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no file like %s: %v", pattern, err)
	}
	return files
}

// Each ConfigMap is parsed with every class that it configures, from its own file or from an
// example.
func TestShippedConfigMapsHaveNoFaults(t *testing.T) {
	examples := documents[storagev1.StorageClass](t, "StorageClass", glob(t, "../../deploy/examples/*.yaml")...)
	for _, file := range glob(t, "../../configmaps/*.yaml") {
		t.Run(filepath.Base(file), func(t *testing.T) {
			classes := append(documents[storagev1.StorageClass](t, "StorageClass", file), examples...)
			configs := documents[corev1.ConfigMap](t, "ConfigMap", file)
			if len(configs) == 0 {
				t.Error("no ConfigMap in it")
			}
			for _, cm := range configs {
				if cm.Labels[contract.LabelType] == contract.TypeConfig {
					mustHaveNoFaults(t, &cm, classes)
				}
			}
		})
	}
}

func mustHaveNoFaults(t *testing.T, cm *corev1.ConfigMap, classes []storagev1.StorageClass) {
	t.Helper()
	served := 0
	for _, class := range classes {
		isNamed := config.NameFor(&class) == cm.Name && config.Lists(cm, class.Name)
		if class.Name != cm.Labels[contract.LabelStorageClass] && !isNamed {
			continue
		}
		served++
		cfg := parse(t, config.SourceOf(cm, &class))
		if len(cfg.Warnings) > 0 {
			t.Errorf("a config that we ship has warnings: %q", cfg.Warnings)
		}
		if class.Provisioner != contract.ProvisionerName {
			t.Errorf("the class %s is %s's", class.Name, class.Provisioner)
		}
		if ns := config.NamespaceFor(&class, "flex-provisioner"); ns != cm.Namespace {
			t.Errorf("the config is in %s, its class looks in %s", cm.Namespace, ns)
		}
	}
	if served == 0 {
		t.Errorf("no StorageClass for the ConfigMap %s", cm.Name)
	}
}
