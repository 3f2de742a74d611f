//go:build e2e

package e2e

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const (
	// nodePods is the policy of the pods that may mount a node's directories.
	nodePods = "flex-provisioner-node-pods"
	// restrictedPods are Pod Security's own examples, in its module: those of this level that pass,
	// and those that fail, for each version.
	restrictedPods = "test/testdata/restricted"
)

// Pod Security judges no pod of the namespace whose pods may mount a node's directories, since its
// levels forbid every hostPath. The policy there judges each of Pod Security's own examples as
// "restricted" does, and each Job with such a pod, but for those that run as root, which --allow
// names.
func TestPodsOfANodesDirectoriesAreRestrictedAsPodSecurityRestrictsThem(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "examples")
	dir := w.newestExamples()
	for verdict, least := range map[string]int{"pass": 20, "fail": 70} {
		files, err := filepath.Glob(filepath.Join(dir, verdict, "*.yaml"))
		w.must(err, "look for examples")
		if len(files) < least {
			t.Errorf("only %d examples to %s: have they moved?", len(files), verdict)
		}
		counts := map[string]int{}
		for _, file := range files {
			name, want := strings.TrimSuffix(filepath.Base(file), ".yaml"), verdict == "pass"
			switch {
			case strings.HasPrefix(name, "runasnonroot"), strings.HasPrefix(name, "runasuser"):
				want = true // by --allow
			case name == "base_windows":
				want = false // the level asks less of them, and no provisioner runs there
			}
			w.judged(file, name, want, counts)
		}
		t.Logf("of %d pods that %s restricted, and as many Jobs: %v", len(files), verdict, counts)
	}
}

// newestExamples returns the folder of the newest version of Pod Security's examples: a version may
// allow more than the one before, and the dispatcher admits what the newest does.
func (w *world) newestExamples() string {
	w.t.Helper()
	module := moduleDir(w.t, "k8s.io/pod-security-admission")
	versions, err := filepath.Glob(filepath.Join(module, restrictedPods, "v1.*"))
	w.must(err, "look for examples")
	return slices.MaxFunc(versions, func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
}

// moduleDir returns where the source of a module is that the tests are built with.
func moduleDir(t *testing.T, module string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", module).CombinedOutput()
	if err != nil {
		t.Fatalf("go list -m %s: %v: %s", module, err, out)
	}
	return strings.TrimSpace(string(out))
}

// judged checks how a pod, and a Job with it, is judged, and counts the verdicts.
func (w *world) judged(file, name string, want bool, counts map[string]int) {
	w.t.Helper()
	text, err := os.ReadFile(file)
	w.must(err, "read an example")
	pod := &corev1.Pod{}
	w.must(yaml.UnmarshalStrict(text, pod), "decode "+file)
	pod.Name = strings.ReplaceAll(pod.Name, "_", "-") // which the API server asks for
	dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	_, ofPod := kube.CoreV1().Pods(nodeNamespace).Create(w.ctx(), pod, dry)
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "example"}}
	job.Spec.Template = corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Annotations: pod.Annotations}, Spec: pod.Spec}
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, ofJob := kube.BatchV1().Jobs(nodeNamespace).Create(w.ctx(), job, dry)
	for kind, err := range map[string]error{"pod": ofPod, "Job": ofJob} {
		by := refusedBy(err)
		counts[by]++
		if (by == "none") != want || by == "another" {
			w.t.Errorf("the %s %s: refused by %s, should pass: %t: %v", kind, name, by, want, err)
		}
	}
}

// refusedBy says who refuses a pod. Some examples are no valid pods for the API server either.
func refusedBy(err error) string {
	switch {
	case err == nil:
		return "none"
	case strings.Contains(err.Error(), fmt.Sprintf("ValidatingAdmissionPolicy '%s'", nodePods)):
		return "the policy"
	case apierrors.IsInvalid(err):
		return "validation"
	default:
		return "another"
	}
}
