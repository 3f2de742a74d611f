//go:build e2e

package chart

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The same as by Helm: by a kustomization of one's own, and by one file, which a release makes of
// deploy/base as install.yaml.
func TestManifestsInTheLab(t *testing.T) {
	for _, way := range []string{"-k", "-f"} {
		t.Run("kubectl apply "+way, func(t *testing.T) {
			l := lab{T: t}
			current := l.manifests(way, "dev", 2)
			apply := func(tag string, replicas int) func() {
				return func() {
					current = l.manifests(way, tag, replicas)
					l.kubectl("apply", way, current)
					l.kubectl("--namespace", namespace, "rollout", "status", "deployment/flex-dispatcher", "--timeout=4m")
				}
			}
			apply("dev", 2)()
			l.run(repository + "/hack/cinder-secret.sh")
			l.class()
			l.underLoad(apply("next", 3), apply("dev", 2))

			l.kubectl("delete", "pvc", "kept")
			l.noVolumesBut(0)
			l.noClass()
			l.endDispatcher(0)
			l.kubectl("delete", "--ignore-not-found", "--timeout=3m", way, current) // the Deployment does not exist any more
			l.nothingIsLeft()
		})
	}
}

// manifests returns what kubectl applies: a folder with a kustomization that names the image, or a
// file that is built of it.
func (l lab) manifests(way, tag string, replicas int) string {
	l.Helper()
	dir := l.TempDir()
	base, err := filepath.Abs(repository + "/deploy/base")
	if err != nil {
		l.Fatal(err)
	}
	if base, err = filepath.Rel(dir, base); err != nil {
		l.Fatal(err)
	}
	text := fmt.Sprintf("resources: [%s]\nimages: [{name: localhost/flex-dispatcher, newTag: %s}]\nreplicas: [{name: flex-dispatcher, count: %d}]\n", base, tag, replicas)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		l.Fatal(err)
	}
	if way == "-k" {
		return dir
	}
	file := filepath.Join(dir, "install.yaml")
	if err := os.WriteFile(file, []byte(l.kubectl("kustomize", dir)), 0o600); err != nil {
		l.Fatal(err)
	}
	return file
}

// class creates the class of the README, with fewer slots, so that claims wait while the dispatchers
// are replaced.
func (l lab) class() {
	l.Helper()
	l.kubectl("apply", "-f", repository+"/configmaps/cinder-iscsi.yaml")
	l.kubectl("--namespace", "flex-provisioner", "patch", "configmap", "cinder-iscsi", "--type=merge", "--patch", `{"data": {"max-parallel": "2", "batch-size": null}}`)
}

func (l lab) noClass() {
	l.Helper()
	l.kubectl("delete", "-f", repository+"/configmaps/cinder-iscsi.yaml")
}

// nothingIsLeft checks that no object of the project exists.
func (l lab) nothingIsLeft() {
	l.Helper()
	const kinds = "namespaces,clusterroles,clusterrolebindings,validatingadmissionpolicies,validatingadmissionpolicybindings,storageclasses,persistentvolumes"
	for line := range strings.Lines(l.kubectl("get", kinds, "--output=name")) {
		if strings.Contains(line, "/flex-") || strings.Contains(line, "/cinder-") || strings.Contains(line, "/pvc-") {
			l.Errorf("%s is left", line)
		}
	}
}
