package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// nameImages are the functions of release.sh from name_images up to notes.
var nameImages = regexp.MustCompile(`(?s)\nname_images\(\) \{\n.*?\n\}\n\n# notes:`)

// Each form in which a manifest or a page names an image of a checkout becomes the name that the
// image has in the release.
func TestManifestsAndPagesNameTheImagesByDigest(t *testing.T) {
	script, err := os.ReadFile("release.sh")
	if err != nil {
		t.Fatal(err)
	}
	function := nameImages.FindString(string(script))
	work, dist := t.TempDir(), t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(dist, name)
		if filepath.IsAbs(name) {
			path = name
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(work+"/images",
		"flex-dispatcher sha256:d\nflex-shell sha256:5\nflex-shell-disk sha256:e\n")
	files := map[string][2]string{
		"deploy/base/dispatcher.yaml": {
			"args: [--script-image=localhost/flex-shell:dev]\n",
			"args: [--script-image=registry.example/flex/flex-shell@sha256:5]\n",
		},
		"deploy/chart/values.yaml": {
			"registry: localhost\nimage:\n  digest: \"\" # wins\nscriptImage:\n  digest: \"\"\nargs: []\n",
			"registry: registry.example/flex\nimage:\n  digest: sha256:d # wins\n" +
				"scriptImage:\n  digest: sha256:5\nargs: []\n",
		},
		"deploy/base/kustomization.yaml": {
			"newName: localhost/flex-dispatcher\nnewTag: dev\n",
			"newName: registry.example/flex/flex-dispatcher\ndigest: sha256:d\n",
		},
		"configmaps/btrfs.yaml": {
			"  image: localhost/flex-shell-disk:dev\n",
			"  image: registry.example/flex/flex-shell-disk@sha256:e\n",
		},
		"README.md": {"image: localhost/mine:dev\n", "image: localhost/mine:dev\n"},
		"docs/install.md": {
			"VERSION=v9.9.9 REGISTRY=registry.example/other\nhelm --version \"$VERSION\"\n",
			"VERSION=v0.1.0 REGISTRY=registry.example/flex\nhelm --version \"$VERSION\"\n",
		},
		"docs/configuration.md": {
			"--script-image=localhost/flex-shell:dev\n",
			"--script-image=registry.example/flex/flex-shell@sha256:5\n",
		},
		"docs/recipes/nfs.md":     {"localhost/flex-shell:dev\n", "localhost/flex-shell:dev\n"},
		"deploy/chart/Chart.yaml": {"version: 0.0.0\n", "version: 0.1.0\n"},
	}
	for name, text := range files {
		write(name, text[0])
	}
	cmd := exec.CommandContext(t.Context(), "bash", "-euc", function+"\nname_images")
	cmd.Env = append(os.Environ(), "WORK="+work, "DIST="+dist,
		"REGISTRY=registry.example/flex", "VERSION=v0.1.0")
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(function, "sed") {
		t.Fatalf("%v: %s", err, out)
	}
	for name, text := range files {
		got, err := os.ReadFile(filepath.Join(dist, name))
		if err != nil || string(got) != text[1] {
			t.Errorf("%s is %q, want %q, %v", name, got, text[1], err)
		}
	}
}
