package test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

var kubernetesModule = regexp.MustCompile(`(?m)^\s*(?:require )?k8s\.io/kubernetes v(1\.\d+)\.\d+$`)

// minorOf returns the Kubernetes that a go.mod of test/cluster requires, such as 1.33.
func minorOf(t *testing.T, file string) string {
	t.Helper()
	found := kubernetesModule.FindStringSubmatch(content(t, file))
	if found == nil {
		t.Fatalf("%s requires no Kubernetes", file)
	}
	return found[1]
}

// The README promises the versions between those that make e2e-long runs.
func TestSupportedKubernetesIsTheOneThatIsTested(t *testing.T) {
	oldest := slices.DeleteFunc(tracked(t, ".mod"), func(file string) bool { return !strings.HasPrefix(file, "test/cluster/kube-") })
	if len(oldest) != 1 {
		t.Fatalf("test/cluster has the modules %v, want those of one old version", oldest)
	}
	from, to := minorOf(t, oldest[0]), minorOf(t, "test/cluster/go.mod")
	for page, want := range map[string]string{
		"README.md":    "runs on Kubernetes " + from + " and later, and is tested from end to end on " + from + " and on " + to,
		"CHANGELOG.md": "tested on Kubernetes " + from + " and " + to,
	} {
		if !strings.Contains(strings.Join(strings.Fields(content(t, page)), " "), want) {
			t.Errorf("%s does not say %q", page, want)
		}
	}
}
