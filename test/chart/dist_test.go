//go:build dist

package chart

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The two ways of a release to install have the same objects, with the same image by digest. DIST is
// the folder that make release has written.
func TestArchiveOfTheReleaseRendersItsManifests(t *testing.T) {
	found, err := filepath.Glob(filepath.Join(os.Getenv("DIST"), "flex-provisioner-*.tgz"))
	if err != nil || len(found) != 1 {
		t.Fatalf("the archives are %q, %v", found, err)
	}
	chart = found[0]
	for name, values := range map[string]string{"install.yaml": "{}", "install-node-directories.yaml": "nodeDirectories: {enabled: true}"} {
		text, err := os.ReadFile(filepath.Join(os.Getenv("DIST"), name))
		if err != nil {
			t.Fatal(err)
		}
		want := decode(t, strings.Split(string(text), "\n---\n"))
		byHelm(want)
		if diff := cmp.Diff(folded(anyOf(want)), folded(anyOf(decode(t, render(t, values))))); diff != "" || len(want) < 25 {
			t.Errorf("%s has (-), the archive of the chart (+):\n%s", name, diff)
		}
	}
}
