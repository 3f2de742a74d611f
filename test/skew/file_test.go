package skew_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
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

	decoded []fakecluster.Change
}

// written is one write. The merge patch leads from the object before it to the one after it, or
// from nothing. Without one the object exists no longer.
type written struct {
	At     time.Time `json:"at"`
	By     string    `json:"by"`
	Verb   string    `json:"verb"`
	Object string    `json:"object"`
	Patch  any       `json:"patch,omitempty"`
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

func (c written) title() string { return c.By + " " + c.Verb + " " + c.Object }

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
func (w *world) past() *past {
	out := &past{Story: w.story.name, Runs: slices.Clone(w.ran)}
	now := map[string]any{}
	history := w.Server.History()
	for _, change := range history {
		at := strings.Join([]string{change.Resource, change.Namespace, change.Name}, "/")
		one := written{At: change.At, By: change.By, Verb: change.Verb, Object: at}
		if change.Now == nil {
			delete(now, at)
		} else {
			after := plain(w.T, change.Now)
			one.Patch = difference(now[at], after)
			now[at] = after
		}
		out.Changes = append(out.Changes, one)
	}
	for i := range out.Runs {
		out.Runs[i].Ended = endOf(history, out.Runs[i])
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
	members, isObject := value.(map[string]any)
	if !isObject {
		return value
	}
	for name, member := range members {
		if member == nil {
			delete(members, name)
		} else {
			members[name] = withoutNulls(member)
		}
	}
	return members
}

// difference returns the merge patch from one value to another.
func difference(from, to any) any {
	before, was := from.(map[string]any)
	after, is := to.(map[string]any)
	if !was || !is {
		return to
	}
	patch := map[string]any{}
	for name := range before {
		if _, stays := after[name]; !stays {
			patch[name] = nil
		}
	}
	for name, value := range after {
		if !reflect.DeepEqual(before[name], value) {
			patch[name] = difference(before[name], value)
		}
	}
	return patch
}

// patched returns a value after a merge patch. The values are not changed.
func patched(value, patch any) any {
	changes, isObject := patch.(map[string]any)
	if !isObject {
		return patch
	}
	out := map[string]any{}
	if before, was := value.(map[string]any); was {
		maps.Copy(out, before)
	}
	for name, change := range changes {
		if change == nil {
			delete(out, name)
		} else {
			out[name] = patched(out[name], change)
		}
	}
	return out
}

// write writes the story into its file.
func (p *past) write(t *testing.T, dir string) {
	t.Helper()
	text, err := yaml.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, p.Story+".yaml"), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func readPast(t *testing.T, path string) *past {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := &past{}
	if err := yaml.UnmarshalStrict(text, out); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	out.decode(t, filepath.Base(filepath.Dir(path)), func(_ string, text []byte) []byte { return text })
	return out
}

// decode reads the objects of the story, each as it is changed by a function. Its dispatcher is no
// dispatcher of today, whose writes are judged.
func (p *past) decode(t fakecluster.T, version string, change func(resource string, object []byte) []byte) {
	t.Helper()
	now := map[string]any{}
	p.decoded = nil
	for _, one := range p.Changes {
		at := strings.SplitN(one.Object, "/", 3)
		made := fakecluster.Change{Key: fakecluster.Key{Resource: at[0], Namespace: at[1], Name: at[2]}, By: one.By, Verb: one.Verb, At: one.At}
		if one.By == fakecluster.DispatcherName {
			made.By += " " + version
		}
		if one.Patch == nil {
			delete(now, one.Object)
		} else {
			now[one.Object] = patched(now[one.Object], one.Patch)
			made.Now = kinds[at[0]]()
			text, err := json.Marshal(now[one.Object])
			if err == nil {
				err = json.Unmarshal(change(at[0], text), made.Now)
			}
			if err != nil {
				t.Fatalf("%s: %v", one.title(), err)
			}
		}
		p.decoded = append(p.decoded, made)
	}
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
	first := slices.IndexFunc(p.Changes, func(c written) bool { return strings.HasPrefix(c.Object, "persistentvolumeclaims/") })
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
