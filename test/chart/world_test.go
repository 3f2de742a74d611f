// Package chart tests deploy/chart by Helm's own engine, and with the tag e2e by Helm itself in the
// lab. It is a module of its own, since Helm's dependencies are no part of the project.
package chart

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

const (
	repository = "../.."
	namespace  = "flex-system"
)

type object = map[string]any

// chart is the folder or the archive that is rendered.
var chart = filepath.Join(repository, "deploy", "chart")

// render returns the documents that helm would apply with these values, sorted by file.
func render(t *testing.T, values string) []string {
	t.Helper()
	documents, err := renderIn(t, namespace, values)
	if err != nil {
		t.Fatal(err)
	}
	return documents
}

// renderIn renders for a release in a namespace.
func renderIn(t *testing.T, namespace, values string) ([]string, error) {
	t.Helper()
	files, err := filesOf(t, namespace, values)
	if err != nil {
		return nil, err
	}
	var documents []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, ".yaml") {
			documents = append(documents, strings.Split(files[name], "\n---\n")...)
		}
	}
	return documents, nil
}

// filesOf returns what Helm makes of each template. The values are judged by the schema first.
func filesOf(t *testing.T, namespace, values string) (map[string]string, error) {
	t.Helper()
	c, err := loader.Load(chart)
	if err != nil {
		t.Fatal(err)
	}
	given := object{}
	if err := yaml.UnmarshalStrict([]byte(values), &given); err != nil {
		t.Fatalf("values of the test: %v", err)
	}
	release := common.ReleaseOptions{Name: "flex", Namespace: namespace, IsInstall: true}
	all, err := util.ToRenderValues(c, given, release, common.DefaultCapabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}

// decode returns the objects of documents by kind, namespace and name.
func decode(t *testing.T, documents []string) map[string]object {
	t.Helper()
	out := map[string]object{}
	for _, text := range documents {
		var o object
		if err := yaml.UnmarshalStrict([]byte(text), &o); err != nil {
			t.Fatalf("%v in:\n%s", err, text)
		}
		if len(o) == 0 {
			continue
		}
		if out[key(o)] != nil {
			t.Errorf("%s is rendered twice", key(o))
		}
		out[key(o)] = o
	}
	return out
}

func key(o object) string {
	metadata, _ := o["metadata"].(object)
	space, _ := metadata["namespace"].(string)
	name, _ := metadata["name"].(string)
	kind, _ := o["kind"].(string)
	return kind + " " + filepath.Join(space, name)
}

// kustomize returns the objects of a kustomization that stands in a folder of deploy.
func kustomize(t *testing.T, kustomization string) map[string]object {
	t.Helper()
	dir := t.TempDir()
	deploy, err := filepath.Abs(filepath.Join(repository, "deploy"))
	if err != nil {
		t.Fatal(err)
	}
	if deploy, err = filepath.Rel(dir, deploy); err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(kustomization, "../", deploy+"/")
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	out, err := made.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return decode(t, strings.Split(string(out), "\n---\n"))
}

// byHelm makes the objects of manifests those that Helm has: it makes the namespace of its release
// itself, and must keep the others.
func byHelm(objects map[string]object) {
	delete(objects, "Namespace "+namespace)
	for _, o := range objects {
		if o["kind"] == "Namespace" {
			o["metadata"].(object)["annotations"] = object{"helm.sh/resource-policy": "keep"}
		}
	}
}

// folded collapses white space in all strings: kustomize folds the lines of long ones anew.
func folded(value any) any {
	switch v := value.(type) {
	case object:
		out := object{}
		for key, one := range v {
			out[key] = folded(one)
		}
		return out
	case []any:
		out := []any{}
		for _, one := range v {
			out = append(out, folded(one))
		}
		return out
	case string:
		return strings.Join(strings.Fields(v), " ")
	}
	return value
}

// file returns the documents of a file of the repository.
func file(t *testing.T, path string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, path))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n---\n")
}

// Helm logs each link in the chart's folder.
func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	os.Exit(m.Run())
}
