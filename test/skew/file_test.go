package skew_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// past is a story as it stands in a file: all that was written in a cluster, and what containers
// did in its storage.
type past struct {
	Story   string    `json:"story"`
	Changes []written `json:"changes"`
	Runs    []ran     `json:"runs,omitempty"`

	bases   bases
	decoded []fakecluster.Change
}

// bases are one object of each kind. That of a new object is what its first patch starts from.
type bases map[string]any

// written is one write.
type written struct {
	// Change is when who did what: "2000-01-01T00:00:04Z dispatcher create jobs/flex-provisioner/a".
	Change string `json:"change"`
	// Patch leads from the object before the write, or from the base of its kind, to the one after.
	Patch patch `json:"patch,omitempty"`
	// Gone is set if the object does not exist any more.
	Gone bool `json:"gone,omitempty"`
}

// ran is what a container did for a claim, after Began writes. Its pod had ended after Ended.
type ran struct {
	Began int           `json:"began"`
	Ended int           `json:"ended"`
	Pod   string        `json:"pod"`
	Verb  contract.Verb `json:"verb"`
	UID   string        `json:"uid"`
	Code  int32         `json:"code"`
	// HasVolume is set if the claim had a volume then, Source is the claim that it was made from.
	HasVolume bool   `json:"hasVolume,omitempty"`
	Source    string `json:"source,omitempty"`
}

// title returns what was written, without the time.
func (c written) title() string { return c.Change[strings.Index(c.Change, " ")+1:] }

// object returns where the object is: its resource, namespace and name.
func (c written) object() string { return c.Change[strings.LastIndex(c.Change, " ")+1:] }

// decode returns the write without the object.
func (c written) decode() (fakecluster.Change, error) {
	words, at := strings.Fields(c.Change), strings.Split(c.object(), "/")
	if len(words) != 4 || len(at) != 3 {
		return fakecluster.Change{}, fmt.Errorf("%q has no time, name, verb and object", c.Change)
	}
	key := fakecluster.Key{Resource: at[0], Namespace: at[1], Name: at[2]}
	when, err := time.Parse(time.RFC3339Nano, words[0])
	return fakecluster.Change{Key: key, At: when, By: words[1], Verb: words[2]}, err
}

// basesFile is in the folder of a version.
const basesFile = "bases.yaml"

// kinds are what stories are about.
var kinds = map[string]func() fakecluster.Object{
	"configmaps":             func() fakecluster.Object { return &corev1.ConfigMap{} },
	"controllerrevisions":    func() fakecluster.Object { return &appsv1.ControllerRevision{} },
	"jobs":                   func() fakecluster.Object { return &batchv1.Job{} },
	"nodes":                  func() fakecluster.Object { return &corev1.Node{} },
	"persistentvolumeclaims": func() fakecluster.Object { return &corev1.PersistentVolumeClaim{} },
	"persistentvolumes":      func() fakecluster.Object { return &corev1.PersistentVolume{} },
	"pods":                   func() fakecluster.Object { return &corev1.Pod{} },
	"serviceaccounts":        func() fakecluster.Object { return &corev1.ServiceAccount{} },
	"storageclasses":         func() fakecluster.Object { return &storagev1.StorageClass{} },
}

// past returns the story of a world as it is written into its file.
func (w *world) past(b bases) *past {
	out := &past{Story: w.story.name, Runs: slices.Clone(w.ran), bases: b}
	now := map[string]any{}
	history := w.Server.History()
	for _, change := range history {
		at := strings.Join([]string{change.Resource, change.Namespace, change.Name}, "/")
		when := change.At.Format(time.RFC3339Nano)
		one := written{Change: strings.Join([]string{when, change.By, change.Verb, at}, " ")}
		if change.Now == nil {
			one.Gone = true
			delete(now, at)
		} else {
			after := plain(w.T, change.Now)
			one.Patch = patch{}
			one.Patch.lead(b.before(now, at), after, "")
			now[at] = after
		}
		out.Changes = append(out.Changes, one)
	}
	for i := range out.Runs {
		out.Runs[i].Ended = endOf(history, out.Runs[i])
	}
	return out
}

// before returns what a patch of an object leads from.
func (b bases) before(now map[string]any, at string) any {
	if before, exists := now[at]; exists {
		return before
	}
	resource, _, _ := strings.Cut(at, "/")
	return b[resource]
}

// basesOf returns the first object of each kind in a story.
func (p *past) basesOf(t fakecluster.T) bases {
	t.Helper()
	out := bases{}
	for _, change := range p.decoded {
		if _, known := out[change.Resource]; !known && change.Now != nil {
			out[change.Resource] = plain(t, change.Now)
		}
	}
	return out
}

// endOf returns after how many writes the pod of a run had ended.
func endOf(history []fakecluster.Change, r ran) int {
	for i := r.Began; i < len(history); i++ {
		pod, isPod := history[i].Now.(*corev1.Pod)
		if isPod && pod.Name == r.Pod && (pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed) {
			return i + 1
		}
	}
	return len(history) + 1
}

// plain returns an object as JSON has it, without its version, which is its place in the story.
func plain(t fakecluster.T, obj fakecluster.Object) any {
	text, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	delete(out["metadata"].(map[string]any), "resourceVersion")
	return withoutNulls(out)
}

func withoutNulls(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if member == nil {
				delete(v, name)
			} else {
				v[name] = withoutNulls(member)
			}
		}
	case []any:
		for i := range v {
			v[i] = withoutNulls(v[i])
		}
	}
	return value
}

// write writes the story into its file.
func (p *past) write(t *testing.T, dir string) {
	t.Helper()
	writeYAML(t, filepath.Join(dir, p.Story+".yaml"), p)
}

func writeYAML(t *testing.T, path string, value any) {
	t.Helper()
	text, err := yaml.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func readYAML(t *testing.T, path string, value any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, value); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

func readPast(t *testing.T, path string) *past {
	t.Helper()
	out := &past{}
	readYAML(t, path, out)
	readYAML(t, filepath.Join(filepath.Dir(path), basesFile), &out.bases)
	out.decode(t, filepath.Base(filepath.Dir(path)), unchanged)
	return out
}

// decode reads the objects of the story, each as it is changed by a function. Its dispatcher is no
// dispatcher of today, whose writes are judged.
func (p *past) decode(t fakecluster.T, version string, change func(resource string, object []byte) []byte) {
	t.Helper()
	now := map[string]any{}
	p.decoded = nil
	for _, one := range p.Changes {
		made, err := one.decode()
		if err != nil {
			t.Fatal(err)
		}
		if made.By == fakecluster.DispatcherName {
			made.By += " " + version
		}
		if one.Gone {
			delete(now, one.object())
		} else {
			made.Now = kinds[made.Resource]()
			after := one.Patch.applied(p.bases.before(now, one.object()))
			now[one.object()] = after
			if err := decodeAs(made.Now, after, func(text []byte) []byte { return change(made.Resource, text) }); err != nil {
				t.Fatalf("%s: %v", one.title(), err)
			}
		}
		p.decoded = append(p.decoded, made)
	}
}

// decodeAs reads a value of JSON into an object.
func decodeAs(obj fakecluster.Object, value any, change func([]byte) []byte) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return json.Unmarshal(change(text), obj)
}

// changes returns the first writes, for a cluster that may change them.
func (p *past) changes(writes int) []fakecluster.Change {
	out := slices.Clone(p.decoded[:writes])
	for i := range out {
		if out[i].Now != nil {
			out[i].Now = out[i].Now.DeepCopyObject().(fakecluster.Object)
		}
	}
	return out
}

// states returns after how many writes there is a state of a claim.
func (p *past) states() []int {
	first := slices.IndexFunc(p.Changes, func(c written) bool { return strings.HasPrefix(c.object(), "persistentvolumeclaims/") })
	var out []int
	for n := first + 1; first >= 0 && n <= len(p.Changes); n++ {
		out = append(out, n)
	}
	return out
}

// isKnown reports whether the story is one of this version.
func (p *past) isKnown() bool { return slices.ContainsFunc(stories, p.isOf) }

func (p *past) isOf(s story) bool { return s.name == p.Story }

// story returns what goes on after the past.
func (p *past) story(t fakecluster.T) story {
	t.Helper()
	i := slices.IndexFunc(stories, p.isOf)
	if i < 0 {
		t.Fatalf("no story has the name %q", p.Story)
	}
	return stories[i]
}
