//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// apply applies the documents of configmaps/NAME.yaml as they are shipped, all but those of the
// kinds given, and deletes them when the test's claims no longer exist.
func (w *world) apply(name string, without ...string) {
	w.t.Helper()
	w.applyFile("../../configmaps/"+name+".yaml", without...)
}

// applyFile does so with any file.
func (w *world) applyFile(file string, without ...string) {
	w.t.Helper()
	var out []string
	for _, doc := range documents(w, file) {
		keep := true
		for _, kind := range without {
			keep = keep && !strings.Contains(doc, "\nkind: "+kind+"\n")
		}
		if keep {
			out = append(out, doc)
		}
	}
	text := strings.Join(out, "\n---\n")
	w.must(kubectl(w.ctx(), text, "apply", "-f", "-"), "apply "+file)
	w.remove(func() {
		if err := kubectl(w.ctx(), text, "delete", "--ignore-not-found", "--wait=false", "-f", "-"); err != nil {
			w.t.Errorf("delete what is in %s: %v", file, err)
		}
	})
}

// The older provisioner's example works by its names, with the config that is shipped. Its class
// has the name of the one that is deployed, so no other test runs meanwhile.
func TestOlderProvisionersExampleProvisions(t *testing.T) {
	w := newWorld(t, "classic")
	docs := documents(w, "../../deploy/examples/cinder-classic.yaml")
	equal(t, "the documents of the example", len(docs), 2)
	w.remove(func() {
		w.deleteClass(cinderClass)
		w.must(kubectl(w.ctx(), "", "apply", "-f", "../../configmaps/cinder-iscsi.yaml"), "deploy the class again")
	})
	w.deleteClass(cinderClass)
	w.must(kubectl(w.ctx(), docs[0], "apply", "-f", "-"), "apply the class")
	time.Sleep(2 * time.Second) // until the dispatchers' caches show this class and no longer the other
	w.must(kubectl(w.ctx(), docs[1], "apply", "-n", w.ns, "-f", "-"), "apply the claim")
	claim, err := kube.CoreV1().PersistentVolumeClaims(w.ns).Get(w.ctx(), "pv1", metav1.GetOptions{})
	w.must(err, "read the claim")
	w.claims = append(w.claims, claim)

	if pv := w.bound(claim); pv.Spec.ISCSI == nil {
		t.Errorf("the PV's source is %+v", pv.Spec.PersistentVolumeSource)
	}
	equal(t, "the volume's type", w.onlyVolume(claim).Type, "iscsi")
	w.deleteClaim(claim)
	w.vanished(claim)
}

func kubectl(ctx context.Context, input string, args ...string) error {
	cmd := exec.CommandContext(ctx, "../cluster/kubectl.sh", args...)
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl %s: %w: %s", args[0], err, out)
	}
	return nil
}

func documents(w *world, file string) []string {
	w.t.Helper()
	text, err := os.ReadFile(file)
	w.must(err, "read an example")
	var out []string
	for doc := range bytes.SplitSeq(text, []byte("\n---\n")) {
		out = append(out, string(doc))
	}
	return out
}

// exampleConfig is the ConfigMap of this name in configmaps/FILE.yaml.
func (w *world) exampleConfig(file, name string) *corev1.ConfigMap {
	w.t.Helper()
	for _, doc := range documents(w, "../../configmaps/"+file+".yaml") {
		if !strings.Contains("\n"+doc, "\nkind: ConfigMap\n") {
			continue
		}
		var cm corev1.ConfigMap
		w.must(yaml.UnmarshalStrict([]byte(doc), &cm), "read "+file)
		if cm.Name == name {
			return &cm
		}
	}
	w.t.Fatalf("no ConfigMap %s in %s", name, file)
	return nil
}

// copyOf makes a config of the example's keys for a class of the test's own, which names its
// namespace.
func (w *world) copyOf(example *corev1.ConfigMap, change func(data map[string]string)) {
	w.t.Helper()
	change(example.Data)
	w.configMap(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name: w.ns, Namespace: example.Namespace, Labels: map[string]string{"type": "provisioner-config", "storage-class": w.ns},
		},
		Data: example.Data,
	})
}
