package test

import (
	"archive/tar"
	"bytes"
	"crypto/rand"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// entry is a file of an archive.
type entry struct {
	name string
	text []byte
}

func archive(t *testing.T, entries ...entry) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		if err := w.WriteHeader(&tar.Header{Name: e.name, Mode: 0o755, Size: int64(len(e.text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(e.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// image is an archive as `docker save` writes it, of a user, with a layer for each list of files.
func image(t *testing.T, user string, layers ...[]string) string {
	t.Helper()
	var full [][]entry
	for _, files := range layers {
		var layer []entry
		for _, file := range files {
			layer = append(layer, entry{file, []byte("x")})
		}
		full = append(full, layer)
	}
	return imageOf(t, user, full...)
}

func imageOf(t *testing.T, user string, layers ...[]entry) string {
	t.Helper()
	encode := func(v any) []byte {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	names := []string{}
	entries := []entry{{"config.json", encode(map[string]any{"config": map[string]string{"User": user}})}}
	for i, inside := range layers {
		names = append(names, string(rune('a'+i))+".tar")
		entries = append(entries, entry{names[i], archive(t, inside...)})
	}
	entries = append(entries, entry{"manifest.json", encode([]map[string]any{{"Config": "config.json", "Layers": names}})})
	path := filepath.Join(t.TempDir(), "image.tar")
	if err := os.WriteFile(path, archive(t, entries...), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// What hack/images.sh builds is refused if it would run as root, and our own images if they hold
// anything but their binary.
func TestImageThatRunsAsRootOrHoldsAShellIsRefused(t *testing.T) {
	ours := []string{"--only", "/flex-dispatcher"}
	binary := []string{"flex-dispatcher"}
	for name, test := range map[string]struct {
		flags  []string
		user   string
		layers [][]string
		fault  string
	}{
		"ours":                       {flags: ours, user: "65532:65532", layers: [][]string{binary}},
		"a script's":                 {user: "65532", layers: [][]string{{"bin/bash", "provision"}}},
		"no user":                    {flags: ours, layers: [][]string{binary}, fault: `its USER is ""`},
		"root":                       {user: "0", fault: `its USER is "0"`},
		"root, with a group":         {user: "0:65532", fault: `its USER is "0:65532"`},
		"a name":                     {user: "nonroot", fault: `its USER is "nonroot"`},
		"a shell":                    {flags: ours, user: "65532", layers: [][]string{{"flex-dispatcher", "bin/sh"}}, fault: "it must contain /flex-dispatcher alone"},
		"a shell in another layer":   {flags: ours, user: "65532", layers: [][]string{binary, {"busybox"}}, fault: "busybox"},
		"another binary":             {flags: ours, user: "65532", layers: [][]string{{"cinder-provisioner"}}, fault: "cinder-provisioner"},
		"no layer":                   {flags: ours, user: "65532", fault: "it must contain /flex-dispatcher alone"},
		"the binary in another path": {flags: ours, user: "65532", layers: [][]string{{"bin/flex-dispatcher"}}, fault: "bin/flex-dispatcher"},
	} {
		t.Run(name, func(t *testing.T) {
			arguments := append(slices.Clone(test.flags), image(t, test.user, test.layers...))
			says, refused := checkImage(t, arguments...)
			if refused != (test.fault != "") || !strings.Contains(says, test.fault) {
				t.Errorf("refused: %t: %s, want a fault with %q (jq is needed: make deps)", refused, says, test.fault)
			}
		})
	}
}

// checkImage returns what hack/check-image.sh says of an image, and whether it is refused.
func checkImage(t *testing.T, arguments ...string) (says string, refused bool) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), filepath.Join(repository, "hack/check-image.sh"), arguments...).CombinedOutput()
	return string(out), err != nil
}

// Every node pulls an image before its first run. What compresses well may be larger than what does
// not.
func TestImageThatIsLargeWhenCompressedIsRefused(t *testing.T) {
	random := make([]byte, 25_000_000)
	rand.Read(random)
	for name, test := range map[string]struct {
		content []byte
		refused bool
	}{
		"large":                {random, true},
		"almost as large":      {random[:len(random)-1_000_000], false},
		"large, of zeros only": {make([]byte, 2*len(random)), false},
	} {
		t.Run(name, func(t *testing.T) {
			says, refused := checkImage(t, imageOf(t, "65532", []entry{{"provision", test.content}}))
			if refused != test.refused || strings.Contains(says, "its compressed size") != test.refused {
				t.Errorf("refused: %t, want %t: %s", refused, test.refused, says)
			}
		})
	}
}

var userLine = regexp.MustCompile(`(?m)^USER [1-9]\d*:[1-9]\d*$`)

// The images begin with nothing, and end with a user by number. Our own are checked to hold no more
// than their binary.
func TestImagesAreFromScratchAndOfANumericUser(t *testing.T) {
	files := slices.DeleteFunc(tracked(t), func(f string) bool { return !strings.HasPrefix(filepath.Base(f), "Dockerfile.") })
	if len(files) != 4 {
		t.Fatalf("there are the files %q: are all images built by hack/images.sh?", files)
	}
	build := content(t, "hack/images.sh")
	for _, file := range files {
		text := content(t, file)
		if !strings.Contains(text, "\nFROM scratch\n") || strings.Count(text, "FROM ") != 1 || len(userLine.FindAllString(text, -1)) != 1 {
			t.Errorf("%s is not from scratch, or has no USER by number", file)
		}
		if !strings.Contains(build, file) {
			t.Errorf("hack/images.sh, which checks what it builds, does not build %s", file)
		}
	}
	for _, line := range []string{`hack/check-image.sh --only "/$1" "$archive"`, `hack/check-image.sh "$archive"`} {
		if strings.Count(build, line) != 1 {
			t.Errorf("hack/images.sh lacks %s", line)
		}
	}
}

// Both kinds of builds make the images of one list, and they start in the same way. Only the image
// with kubectl is left out: it is an example of a program of the reader's own.
func TestReleaseHasTheImagesOfMakeImages(t *testing.T) {
	images := strings.Fields(content(t, "hack/release/images.txt"))
	if len(images) < 3 || len(images) > 7 {
		t.Errorf("a release has the images %q: a node that serves all recipes pulls each", images)
	}
	for _, file := range []string{"hack/images.sh", "hack/release/images.sh"} {
		if !strings.Contains(content(t, file), "<hack/release/images.txt\n") {
			t.Errorf("%s does not read the list", file)
		}
	}
	// What a config names is built.
	named := regexp.MustCompile(`image: localhost/([a-z-]+):dev`)
	for name := range recipes(t) {
		for _, m := range named.FindAllStringSubmatch(content(t, "configmaps/"+name+".yaml"), -1) {
			if !slices.Contains(images, m[1]) {
				t.Errorf("the recipe %s has the image %s, which no release has", name, m[1])
			}
		}
	}
	release := content(t, "hack/release/images.sh") + content(t, "hack/release/image.go")
	for file, lines := range map[string][2]string{
		"scripts/Dockerfile.shell": {
			"ENV PATH=/bin\nUSER 65532:65532\nENTRYPOINT [\"/bin/bash\"]\n",
			`image "$1" /bin/bash -env PATH=/bin`,
		},
		"Dockerfile.dispatcher": {"USER 65532:65532\nENTRYPOINT [\"/flex-dispatcher\"]\n", `image "$1" "/$1"`},
		"Dockerfile.cinder":     {"USER 65532:65532\nENTRYPOINT [\"/cinder-provisioner\"]\n", `const user = "65532:65532"`},
	} {
		if !strings.HasSuffix(content(t, file), lines[0]) || !strings.Contains(release, lines[1]) {
			t.Errorf("%s ends otherwise than %q, or hack/release lacks %s", file, lines[0], lines[1])
		}
	}
}

// The dispatcher's container is not root, writes to no file system of its own, and has no
// capability.
func TestDispatcherRunsWithAReadOnlyRootFileSystem(t *testing.T) {
	pod := documentOf[appsv1.Deployment](t, "Deployment", "base", "dispatcher.yaml").Spec.Template.Spec
	for _, c := range pod.Containers {
		s := c.SecurityContext
		if s == nil || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
			s.Capabilities == nil || len(s.Capabilities.Add) > 0 || len(s.Capabilities.Drop) != 1 || s.Capabilities.Drop[0] != "ALL" {
			t.Errorf("the container %s has %+v", c.Name, s)
		}
	}
	if len(pod.Containers) == 0 || !*pod.SecurityContext.RunAsNonRoot {
		t.Errorf("the pod has %+v", pod.SecurityContext)
	}
}
