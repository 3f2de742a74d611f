package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// rootOf makes the files of an image, all with one text. A name that ends with a slash is a directory.
func rootOf(t *testing.T, names []string, text string) string {
	t.Helper()
	dir := t.TempDir()
	for _, file := range names {
		path := filepath.Join(dir, file)
		err := os.MkdirAll(filepath.Dir(path), 0o700)
		if !strings.HasSuffix(file, "/") {
			err = errors.Join(err, os.WriteFile(path, []byte(text), 0o700))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// built writes an image by the program's own arguments.
func built(t *testing.T, dir string, arguments ...string) v1.Hash {
	t.Helper()
	all := append([]string{"-o", dir, "-name", "registry.example/flex/a", "-entrypoint", "/provision", "-env", "PATH=/bin", "-label", "version=v1"}, arguments...)
	digest, err := run(all)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// Who verifies a release builds it again, on another machine, at another time.
func TestSameFilesGiveTheSameBytes(t *testing.T) {
	a, b := rootOf(t, []string{"bin/a", "bin/b", "tmp/"}, "x"), rootOf(t, []string{"tmp/", "bin/b", "bin/a"}, "x")
	for path, mode := range map[string]os.FileMode{"bin": 0o755, "bin/a": 0o755} {
		if err := errors.Join(os.Chmod(filepath.Join(b, path), mode), os.Chtimes(filepath.Join(b, path), time.Unix(1, 0), time.Unix(1, 0))); err != nil {
			t.Fatal(err)
		}
	}
	first, second := t.TempDir(), filepath.Join(t.TempDir(), "another/folder")
	digest, again := built(t, first, "linux/amd64="+a, "linux/arm64="+b), built(t, second, "linux/amd64="+b, "linux/arm64="+a)
	if digest != again {
		t.Errorf("the digests are %s and %s", digest, again)
	}
	if diff := cmp.Diff(filesOf(t, first), filesOf(t, second)); diff != "" {
		t.Errorf("the layouts differ:\n%s", diff)
	}
	if other := built(t, t.TempDir(), "linux/amd64="+a, "linux/arm64="+rootOf(t, []string{"bin/a", "bin/b", "tmp/"}, "y")); other == digest {
		t.Error("another file gives the same digest")
	}
}

// filesOf returns the files of a directory by name.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || !info.Mode().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		out[strings.TrimPrefix(path, dir)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A node takes the image of its own platform, by what index and config say.
func TestEachPlatformHasAnImageOfItsOwn(t *testing.T) {
	dir := t.TempDir()
	digest := built(t, dir, "linux/amd64="+rootOf(t, []string{"provision"}, "a"), "linux/arm64/v8="+rootOf(t, []string{"provision"}, "b"))
	index := readIndex(t, dir, digest)
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range manifest.Manifests {
		one, err := index.Image(m.Digest)
		if err != nil {
			t.Fatal(err)
		}
		file, err := one.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		want := v1.Config{User: "65532:65532", Entrypoint: []string{"/provision"}, Env: []string{"PATH=/bin"}, Labels: map[string]string{"version": "v1"}}
		if diff := cmp.Diff(want, file.Config); diff != "" || m.MediaType != types.OCIManifestSchema1 {
			t.Errorf("%s: %s: %s", m.Platform, m.MediaType, diff)
		}
		if !file.Platform().Equals(*m.Platform) {
			t.Errorf("the index says %s, the config %s", m.Platform, file.Platform())
		}
		layers, err := one.Layers()
		if err != nil || len(layers) != 1 {
			t.Fatalf("%d layers, %v", len(layers), err)
		}
		got = append(got, m.Platform.String()+" "+contentOf(t, layers[0]))
	}
	if want := []string{"linux/amd64 a", "linux/arm64/v8 b"}; !slices.Equal(got, want) {
		t.Errorf("the images are %q, want %q", got, want)
	}
}

// readIndex reads a layout back. Its only entry is the index, under the name by which nodes import it.
func readIndex(t *testing.T, dir string, digest v1.Hash) v1.ImageIndex {
	t.Helper()
	all, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := all.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if len(manifest.Manifests) != 1 || manifest.Manifests[0].Digest != digest ||
		manifest.Manifests[0].Annotations["io.containerd.image.name"] != "registry.example/flex/a@"+digest.String() {
		t.Fatalf("%s has %+v", dir, manifest.Manifests)
	}
	index, err := all.ImageIndex(digest)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func contentOf(t *testing.T, layer v1.Layer) string {
	t.Helper()
	r, err := layer.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	return string(readTar(t, r)["provision"])
}

// readTar returns the files of an archive by name, and of a link an arrow and its target.
func readTar(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for files := tar.NewReader(r); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		switch header.Typeflag {
		case tar.TypeReg:
			if out[header.Name], err = io.ReadAll(files); err != nil {
				t.Fatal(err)
			}
		case tar.TypeSymlink:
			out[header.Name] = []byte("-> " + header.Linkname)
		}
	}
}

// The manifests name an image by the digest that the program prints, in every registry.
func TestARegistryHasTheImageUnderItsDigest(t *testing.T) {
	dir := t.TempDir()
	digest := built(t, dir, "linux/amd64="+rootOf(t, []string{"provision"}, "a"))
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	to, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://")+"/flex/a:v1", name.Insecure)
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.WriteIndex(to, readIndex(t, dir, digest)); err != nil {
		t.Fatal(err)
	}
	head, err := remote.Head(to)
	if err != nil || head.Digest != digest {
		t.Errorf("the registry has %+v, %v, want %s", head, err, digest)
	}
}

// skopeo of Debian 12 writes these bytes, without what this library adds, and the digest must stay.
func TestIndexHasTheBytesThatOtherToolsWrite(t *testing.T) {
	dir := t.TempDir()
	digest := built(t, dir, "linux/amd64="+rootOf(t, []string{"provision"}, "a"), "linux/arm64="+rootOf(t, []string{"provision"}, "b"))
	raw, err := readIndex(t, dir, digest).RawManifest()
	if err != nil {
		t.Fatal(err)
	}
	got := regexp.MustCompile(`"sha256:[0-9a-f]{64}","size":[0-9]+`).ReplaceAllString(string(raw), "X")
	one := `{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":X,"platform":{"architecture":"%s","os":"linux"}}`
	want := `{"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[` + fmt.Sprintf(one, "amd64") + "," + fmt.Sprintf(one, "arm64") + `]}`
	if got != want {
		t.Errorf("it is\n%s, want\n%s", got, want)
	}
}

func TestLayerHasLinksAndNothingOfItsMachine(t *testing.T) {
	dir := rootOf(t, []string{"bin/busybox"}, "x")
	if err := errors.Join(os.Symlink("busybox", filepath.Join(dir, "bin/sh")), os.WriteFile(filepath.Join(dir, "functions"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := writeTar(&out, dir); err != nil {
		t.Fatal(err)
	}
	want := []tar.Header{
		{Typeflag: tar.TypeDir, Name: "bin/", Mode: 0o755},
		{Typeflag: tar.TypeReg, Name: "bin/busybox", Mode: 0o755, Size: 1},
		{Typeflag: tar.TypeSymlink, Name: "bin/sh", Linkname: "busybox", Mode: 0o777},
		{Typeflag: tar.TypeReg, Name: "functions", Mode: 0o644},
	}
	var got []tar.Header
	for files := tar.NewReader(&out); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(time.Unix(0, 0)) {
			t.Errorf("%s is of %s", header.Name, header.ModTime)
		}
		header.ModTime, header.Format = time.Time{}, tar.FormatUnknown
		got = append(got, *header)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsNoFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run([]string{"-o", t.TempDir(), "-name", "a", "-entrypoint", "/a", "linux/amd64=" + dir}); err == nil || !strings.Contains(err.Error(), "is neither a file") {
		t.Errorf("the error is %v", err)
	}
}

func TestWrongArgumentsAreRefused(t *testing.T) {
	dir := t.TempDir()
	for fault, arguments := range map[string][]string{
		"usage":            {"-o", dir, "-name", "a", "linux/amd64=" + dir},
		"OS/ARCHITECTURE=": {"-o", dir, "-name", "a", "-entrypoint", "/a", "amd64=" + dir},
		"NAME=VALUE":       {"-label", "a"},
		"no such file":     {"-o", t.TempDir(), "-name", "a", "-entrypoint", "/a", "linux/amd64=" + dir + "/none"},
	} {
		if _, err := run(arguments); err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%q: the error is %v, want one with %q", arguments, err, fault)
		}
	}
}
