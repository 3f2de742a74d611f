//go:build dist

package main

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// dist is the folder that make release has written, and registry the one that its manifests name.
var dist, registryOfDist = os.Getenv("DIST"), os.Getenv("REGISTRY")

// machines are the architectures of a release, as its programs name them.
var machines = map[string]elf.Machine{"linux/amd64": elf.EM_X86_64, "linux/arm64": elf.EM_AARCH64}

// shell is the image in which the scripts of configs run.
const shell = "flex-shell"

// shells are the images in which scripts run, each with the programs of Debian that it has beside
// bash, busybox and flex.
var shells = map[string][]string{
	shell:             {"curl", "flock", "jq", "ssh"},
	"flex-shell-disk": {"btrfs", "curl", "flock", "jq", "losetup", "ssh"},
	"flex-shell-ceph": {"jq", "rbd"},
}

func text(t *testing.T, name string) []byte {
	t.Helper()
	out, err := os.ReadFile(filepath.Join(dist, name))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// sums returns what SHA256SUMS says of each file.
func sums(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for line := range strings.Lines(string(text(t, "SHA256SUMS"))) {
		sum, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		out[name] = sum
	}
	return out
}

func sumOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// A file that no line names could be changed unseen.
func TestEachFileHasItsSum(t *testing.T) {
	got := map[string]string{}
	for name, content := range filesOf(t, dist) {
		if name != "/SHA256SUMS" {
			got[strings.TrimPrefix(name, "/")] = sumOf([]byte(content))
		}
	}
	if diff := cmp.Diff(sums(t), got); diff != "" || len(got) < 100 {
		t.Errorf("%d files; SHA256SUMS (-) is not what is there (+):\n%s", len(got), diff)
	}
}

// layoutOf returns the index of an image.
func layoutOf(t *testing.T, name string) (v1.Hash, v1.ImageIndex) {
	t.Helper()
	all, err := layout.ImageIndexFromPath(filepath.Join(dist, "images", name))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := all.IndexManifest()
	if err != nil || len(manifest.Manifests) != 1 {
		t.Fatalf("%s: %v, %v", name, manifest, err)
	}
	entry := manifest.Manifests[0]
	if want := registryOfDist + "/" + name + "@" + entry.Digest.String(); entry.Annotations[nameOfImage] != want {
		t.Errorf("%s is imported as %s, want %s", name, entry.Annotations[nameOfImage], want)
	}
	index, err := all.ImageIndex(entry.Digest)
	if err != nil {
		t.Fatal(err)
	}
	return entry.Digest, index
}

func TestImagesHaveProgramsOfTheirPlatform(t *testing.T) {
	programs := map[string][]string{"flex-dispatcher": {"flex-dispatcher"}, "cinder-provisioner": {"cinder-provisioner"}}
	for name, more := range shells {
		programs[name] = []string{"bin/bash", "bin/busybox", "bin/flex"}
		for _, program := range more {
			programs[name] = append(programs[name], "bin/"+program)
		}
	}
	found, err := os.ReadDir(filepath.Join(dist, "images"))
	if err != nil || len(found) != len(programs) {
		t.Errorf("there are %v, %v", found, err)
	}
	for name, want := range programs {
		t.Run(name, func(t *testing.T) {
			_, index := layoutOf(t, name)
			if err := validate.Index(index); err != nil {
				t.Error(err)
			}
			manifest, err := index.IndexManifest()
			if err != nil {
				t.Fatal(err)
			}
			var platforms []string
			for _, m := range manifest.Manifests {
				platforms = append(platforms, m.Platform.String())
				one, err := index.Image(m.Digest)
				if err != nil {
					t.Fatal(err)
				}
				entrypoint := "/bin/bash"
				if len(want) == 1 {
					entrypoint = "/" + name
				}
				checkConfig(t, one, entrypoint)
				checkPrograms(t, one, machines[m.Platform.String()], want)
			}
			if want := slices.Sorted(maps.Keys(machines)); !slices.Equal(platforms, want) {
				t.Errorf("it is for %q, want %q", platforms, want)
			}
		})
	}
}

// checkConfig holds an image to a user that is not root, as hack/check-image.sh does with those of
// make images.
func checkConfig(t *testing.T, one v1.Image, entrypoint string) {
	t.Helper()
	file, err := one.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config := file.Config
	if config.User != "65532:65532" || !slices.Equal(config.Entrypoint, []string{entrypoint}) {
		t.Errorf("its config is %+v", config)
	}
}

// checkPrograms holds an image to what hack/check-image.sh asks of those of make images: a size,
// and no file beside the binary of the dispatcher or of Cinder.
func checkPrograms(t *testing.T, one v1.Image, machine elf.Machine, want []string) {
	t.Helper()
	size, err := one.Size()
	if layers, err := one.Layers(); err == nil {
		for _, layer := range layers {
			bytes, _ := layer.Size()
			size += bytes
		}
	}
	if err != nil || size > 25_000_000 {
		t.Errorf("it has %d bytes, %v", size, err)
	}
	files := content(t, one)
	for _, name := range want {
		program, err := elf.NewFile(bytes.NewReader(files[name]))
		if err != nil || program.Machine != machine {
			t.Errorf("%s is %+v, %v", name, program, err)
		}
	}
	if len(want) == 1 && len(files) != 1 {
		t.Errorf("it holds %q", slices.Sorted(maps.Keys(files)))
	}
}

// content returns the files of an image.
func content(t *testing.T, one v1.Image) map[string][]byte {
	t.Helper()
	r := mutate.Extract(one)
	defer r.Close()
	return readTar(t, r)
}

// A link to an applet that a busybox lacks would be found by the first run on that architecture.
func TestBusyboxHasEachAppletThatALinkNames(t *testing.T) {
	for name := range shells {
		t.Run(name, func(t *testing.T) { checkApplets(t, name) })
	}
}

func checkApplets(t *testing.T, image string) {
	t.Helper()
	_, index := layoutOf(t, image)
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifest.Manifests {
		one, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		files, links := content(t, one), 0
		for name, target := range files {
			if string(target) != "-> busybox" {
				continue
			}
			if links++; !bytes.Contains(files["bin/busybox"], []byte("\x00"+filepath.Base(name)+"\x00")) {
				t.Errorf("%s: busybox has no %s", m.Platform, name)
			}
		}
		if links < 200 {
			t.Errorf("%s: %d links", m.Platform, links)
		}
	}
}

// A first line such as #!/usr/bin/env bash finds its program, jq is of 1.7, and curl knows whom it
// trusts.
func TestShellHasWhatAScriptExpects(t *testing.T) {
	_, index := layoutOf(t, shell)
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range manifest.Manifests {
		one, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		files := content(t, one)
		for name, want := range map[string]string{
			"usr/bin": "-> ../bin", "bin/env": "-> busybox", "bin/sh": "-> busybox",
			"etc/passwd": "root:x:0:0::/tmp:/bin/bash\nflex:x:65532:65532::/tmp:/bin/bash\n",
		} {
			if got := string(files[name]); got != want {
				t.Errorf("%s: %s is %.100q, want %q", m.Platform, name, got, want)
			}
		}
		const roots = "etc/ssl/certs/ca-certificates.crt"
		if n := bytes.Count(files[roots], []byte("-----BEGIN CERTIFICATE-----\n")); n < 100 {
			t.Errorf("%s: %s has %d certificates", m.Platform, roots, n)
		}
	}
	if sbom := text(t, "sbom.spdx.json"); !bytes.Contains(sbom, []byte("pkg:deb/debian/jq@1.7")) {
		t.Error("no image has jq 1.7")
	}
}

var imageOfACheckout = regexp.MustCompile(`[Ii]mage(?:: |=)localhost/[a-z-]+:dev`)

// A page of the release had a pod whose image only a checkout builds: no node could start it.
func TestNoPageNamesAnImageOfACheckout(t *testing.T) {
	pages := 0
	for name, content := range filesOf(t, dist) {
		if filepath.Ext(name) != ".md" {
			continue
		}
		pages++
		if found := imageOfACheckout.FindString(content); found != "" {
			t.Errorf("%s has %s", name, found)
		}
	}
	if pages < 20 {
		t.Errorf("there are %d pages", pages)
	}
}

// imageLine finds the key image, scriptImage of the chart, and --script-image of the dispatcher.
var imageLine = regexp.MustCompile(
	`(?m)^\s*(?:(?:- )?image: |scriptImage: |.*--script-image=)"?([^\s"'\],]+)`)

// Each image that a manifest names is in the release, by this digest.
func TestManifestsNameTheImagesOfTheRelease(t *testing.T) {
	found, err := filepath.Glob(filepath.Join(dist, "*.yaml"))
	for _, pattern := range []string{"configmaps/*.yaml", "deploy/*/*.yaml"} {
		more, err := filepath.Glob(filepath.Join(dist, pattern))
		found = append(found, more...)
		if err != nil {
			t.Fatal(err)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, path := range found {
		for _, m := range imageLine.FindAllSubmatch(text(t, strings.TrimPrefix(path, dist)), -1) {
			image := string(m[1])
			name, digest, _ := strings.Cut(strings.TrimPrefix(image, registryOfDist+"/"), "@")
			if strings.HasPrefix(image, "localhost/acme/") || image == "flex-dispatcher" {
				continue // stands for an image of the reader's own, or for what the kustomization names
			}
			if want, _ := layoutOf(t, name); digest != want.String() {
				t.Errorf("%s names %s, and the release has %s", path, image, want)
			}
			named[name] = true
		}
	}
	if len(named) != len(shells)+2 {
		t.Errorf("only %q are named", slices.Sorted(maps.Keys(named)))
	}
}
