//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

// goldenFiles are the PVs and Secrets of every mapper, as its unit tests hold them.
const goldenFiles = "../../provisioner-image/mapper/testdata/*.yaml"

// Every PV that a mapper can write, and its Secret, is created on the real API server, which knows
// every field and keeps every value.
func TestGoldenVolumesAreAccepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "golden")
	files, err := filepath.Glob(goldenFiles)
	w.must(err, "find the golden files")
	if len(files) < 25 {
		t.Fatalf("only %d golden files", len(files))
	}
	kinds := map[string]bool{}
	for _, file := range files {
		golden := w.readGolden(file)
		made := w.create(golden)
		for _, part := range []string{"spec", "data"} {
			if diff := missing(golden.Object[part], made.Object[part]); diff != "" {
				t.Errorf("%s: the API server does not keep %s%s", file, part, diff)
			}
		}
		spec, _ := golden.Object["spec"].(map[string]any)
		for kind := range spec {
			kinds[kind] = true
		}
	}
	for _, kind := range []string{"iscsi", "fc", "csi", "flexVolume"} {
		equal(t, "a golden PV has the source "+kind, kinds[kind], true)
	}
	t.Logf("%d objects created", len(files))
}

// What the API server must not take, it does not take: else its acceptance would prove nothing.
func TestInvalidVolumesAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "golden")
	for name, spoil := range map[string][]string{
		"an IQN that is none":  {"iqn-of-nobody", "spec", "iscsi", "iqn"},
		"a field of nobody's":  {"x", "spec", "iscsi", "targetPortals"},
		"a mode that is none":  {"Tape", "spec", "volumeMode"},
		"a policy that is not": {"Burn", "spec", "persistentVolumeReclaimPolicy"},
	} {
		golden := w.readGolden(strings.Replace(goldenFiles, "*", "iscsi.pv", 1))
		golden.SetName("spoilt-" + w.ns)
		w.must(unstructured.SetNestedField(golden.Object, spoil[0], spoil[1:]...), "spoil the golden PV")
		if _, err := post(w, golden); !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) {
			w.remove(func() { w.goldenGone(golden) })
			t.Errorf("%s: %v", name, err)
		}
	}
}

func (w *world) readGolden(file string) *unstructured.Unstructured {
	w.t.Helper()
	data, err := os.ReadFile(file)
	w.must(err, "read a golden file")
	golden := &unstructured.Unstructured{}
	w.must(yaml.Unmarshal(data, &golden.Object), "read "+file)
	return golden
}

// create makes a golden object under the name that it has, and takes it away with the test.
func (w *world) create(golden *unstructured.Unstructured) *unstructured.Unstructured {
	w.t.Helper()
	made, err := post(w, golden)
	w.must(err, "create "+golden.GetKind()+" "+golden.GetName())
	w.remove(func() { w.goldenGone(golden) })
	return made
}

func post(w *world, golden *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	body, err := golden.MarshalJSON()
	w.must(err, "write a golden object as JSON")
	request := at(kube.CoreV1().RESTClient().Post(), golden).Param("fieldValidation", metav1.FieldValidationStrict)
	answer, err := request.SetHeader("Content-Type", "application/json").SetHeader("Accept", "application/json").Body(body).DoRaw(w.ctx())
	if err != nil {
		return nil, err
	}
	made := &unstructured.Unstructured{}
	w.must(json.Unmarshal(answer, &made.Object), "read the API server's answer")
	return made, nil
}

// goldenGone deletes it; nothing holds a PV that was never bound, once its finalizers are off.
func (w *world) goldenGone(golden *unstructured.Unstructured) {
	off := []byte(`{"metadata":{"finalizers":null}}`)
	patch := at(kube.CoreV1().RESTClient().Patch("application/merge-patch+json"), golden).Name(golden.GetName()).Body(off)
	w.gone(patch.Do(w.ctx()).Error(), "the finalizers of "+golden.GetName())
	w.gone(at(kube.CoreV1().RESTClient().Delete(), golden).Name(golden.GetName()).Do(w.ctx()).Error(), golden.GetName())
}

func at(request *rest.Request, golden *unstructured.Unstructured) *rest.Request {
	resource := strings.ToLower(golden.GetKind()) + "s"
	return request.NamespaceIfScoped(golden.GetNamespace(), golden.GetNamespace() != "").Resource(resource)
}

// missing is the path of the first value that was wanted and is not there. Defaults may come on
// top.
func missing(want, got any) string {
	fields, ok := want.(map[string]any)
	if !ok {
		if reflect.DeepEqual(want, got) {
			return ""
		}
		return ": " + jsonOf(want) + " is " + jsonOf(got)
	}
	there, _ := got.(map[string]any)
	for name, value := range fields {
		if diff := missing(value, there[name]); diff != "" {
			return "." + name + diff
		}
	}
	return ""
}

func jsonOf(value any) string {
	text, _ := json.Marshal(value) // it came from JSON
	return string(text)
}
