package test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var kubernetesModule = regexp.MustCompile(`(?m)^\s*(?:require )?k8s\.io/kubernetes v(1\.\d+)\.\d+$`)

// minorOf returns the Kubernetes that a go.mod of test/cluster requires, such as 1.33.
func minorOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	found := kubernetesModule.FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s requires no Kubernetes", file)
	}
	return string(found[1])
}

// The README promises the versions between those that make e2e-long runs.
func TestSupportedKubernetesIsTheOneThatIsTested(t *testing.T) {
	oldest, err := filepath.Glob(filepath.Join(repository, "test", "cluster", "kube-*.mod"))
	if err != nil || len(oldest) != 1 {
		t.Fatalf("test/cluster has the modules %v, want those of one old version: %v", oldest, err)
	}
	from, to := minorOf(t, oldest[0]), minorOf(t, filepath.Join(repository, "test", "cluster", "go.mod"))
	for page, want := range map[string]string{
		"README.md":    "runs on Kubernetes " + from + " and later, and is tested from end to end on " + from + " and on " + to,
		"CHANGELOG.md": "tested on Kubernetes " + from + " and " + to,
	} {
		text, err := os.ReadFile(filepath.Join(repository, page))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), want) {
			t.Errorf("%s does not say %q", page, want)
		}
	}
}
