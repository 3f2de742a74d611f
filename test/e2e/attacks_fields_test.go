//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// verdict is what becomes of the writes of one field, from the most that one of them reaches.
type verdict int

const (
	changesNothing verdict = iota // the API server drops it, or the field has that value
	refusedByKubernetes
	refusedByPolicy
	changesIt
)

func (v verdict) String() string {
	return [...]string{"changes nothing", "refused by Kubernetes", "refused by our policy", "passes"}[v]
}

// field is one field of an object, as a path of JSON names, with "[]" for each element of a list,
// and the values that it is tried with.
type field struct {
	path   []string
	values []any
}

func (f field) String() string { return strings.ReplaceAll(strings.Join(f.path, "."), ".[]", "[]") }

// patches returns the merge patches that write the field.
func (f field) patches() []string {
	var out []string
	for _, value := range append(slices.Clone(f.values), any(nil)) {
		for _, name := range slices.Backward(f.path) {
			if name == "[]" {
				value = []any{value}
			} else {
				value = map[string]any{name: value}
			}
		}
		text, err := json.Marshal(value)
		if err != nil {
			panic(err) // it is made of strings, numbers and maps
		}
		out = append(out, string(text))
	}
	return out
}

// Values of types that Kubernetes asks more of than that they are text. Other names are names.
var valuesOfType = map[reflect.Type][]any{
	reflect.TypeFor[resource.Quantity]():                              {"2Gi", "1Mi"},
	reflect.TypeFor[metav1.Time]():                                    {"2020-01-01T00:00:00Z"},
	reflect.TypeFor[metav1.FieldsV1]():                                {map[string]any{}},
	reflect.TypeFor[types.UID]():                                      {attackUID},
	reflect.TypeFor[corev1.PersistentVolumeReclaimPolicy]():           {"Retain", "Delete", "Recycle"},
	reflect.TypeFor[corev1.PersistentVolumeAccessMode]():              {"ReadWriteMany"},
	reflect.TypeFor[corev1.PersistentVolumeMode]():                    {"Block", "Filesystem"},
	reflect.TypeFor[corev1.PersistentVolumeClaimPhase]():              {"Lost"},
	reflect.TypeFor[corev1.PersistentVolumeClaimConditionType]():      {"Resizing", "ModifyingVolume"},
	reflect.TypeFor[corev1.ConditionStatus]():                         {"True"},
	reflect.TypeFor[corev1.ClaimResourceStatus]():                     {"ControllerResizeInProgress"},
	reflect.TypeFor[corev1.PersistentVolumeClaimModifyVolumeStatus](): {"InProgress"},
	reflect.TypeFor[metav1.OwnerReference]():                          {map[string]any{"apiVersion": "v1", "kind": "Node", "name": "none", "uid": attackUID}},
	reflect.TypeFor[corev1.VolumeNodeAffinity](): {map[string]any{"required": map[string]any{"nodeSelectorTerms": []any{
		map[string]any{"matchExpressions": []any{map[string]any{"key": "a", "operator": "Exists"}}},
	}}}},
}

// fieldsOf returns every field of a type, as deep as it goes: so a new one of a newer Kubernetes is
// among them.
func fieldsOf(t reflect.Type, path ...string) []field {
	path = slices.Clone(path)
	values, known := valuesOfType[t]
	switch own := (field{path, values}); {
	case t == reflect.TypeFor[resource.Quantity](), t == reflect.TypeFor[metav1.Time](), t == reflect.TypeFor[metav1.FieldsV1]():
		return []field{own}
	case t.Kind() == reflect.Pointer:
		return fieldsOf(t.Elem(), path...)
	case t.Kind() == reflect.Slice:
		return append([]field{own}, fieldsOf(t.Elem(), append(path, "[]")...)...)
	case t.Kind() == reflect.Map && t.Key() == reflect.TypeFor[corev1.ResourceName]():
		return slices.Concat([]field{own}, fieldsOf(t.Elem(), append(path, "storage")...), fieldsOf(t.Elem(), append(path, "example.com/attack")...))
	case t.Kind() == reflect.Map:
		return append([]field{own}, fieldsOf(t.Elem(), append(path, "e2e.example.com/attack")...)...)
	case t.Kind() == reflect.Struct:
		all := []field{own}
		for part := range t.Fields() {
			name, _, _ := strings.Cut(part.Tag.Get("json"), ",")
			below := path
			if name != "" { // else its own fields stand here
				below = append(slices.Clone(path), name)
			}
			all = append(all, fieldsOf(part.Type, below...)...)
		}
		return all
	case known:
		return []field{own}
	case t.Kind() == reflect.Bool:
		return []field{{path, []any{true, false}}}
	case t.Kind() == reflect.String:
		return []field{{path, []any{"attack", "example.com/attack"}}}
	default:
		return []field{{path, []any{1}}}
	}
}

// target is an object that the dispatcher may patch, and the fields of it that it may write.
type target struct {
	name  string
	of    reflect.Type
	may   []string
	now   metav1.Object
	patch func(ctx context.Context, change string) (metav1.Object, error)
}

// patchable makes a PV and a claim that are bound to each other, with something in every part, and
// returns the ways to them.
func (w *world) patchable() []target {
	w.t.Helper()
	class := w.ns + "-grows"
	w.class(class, func(c *storagev1.StorageClass) { c.AllowVolumeExpansion = new(true) })
	pv, claim := w.ownPV(class, "fields", corev1.PersistentVolumeReclaimRetain)
	filled := `{"metadata":{"labels":{"e2e":"attacked"},"annotations":{"e2e.example.com/attacked":"yes"}}}`
	w.must(errors.Join(patchPV(pv.Name, filled)(w.ctx(), kube), patchClaim(claim, filled)(w.ctx(), kube)), "fill the objects")
	w.must(patchClaim(claim, `{"status":{"conditions":[{"type":"ModifyingVolume","status":"True"}],
		"allocatedResources":{"storage":"1Gi"},"allocatedResourceStatuses":{"storage":"NodeResizePending"}}}`, "status")(w.ctx(), kube), "fill the status")
	var err error
	pv, err = kube.CoreV1().PersistentVolumes().Get(w.ctx(), pv.Name, metav1.GetOptions{})
	w.must(err, "read the PV")
	claim = w.look(claim)
	client, dry := w.as(theDispatcher).CoreV1(), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}}
	ofClaim := func(subresource ...string) func(context.Context, string) (metav1.Object, error) {
		return func(ctx context.Context, change string) (metav1.Object, error) {
			return client.PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, []byte(change), dry, subresource...)
		}
	}
	return []target{
		{"persistentvolumes", reflect.TypeFor[corev1.PersistentVolume](), []string{"spec.capacity.storage"}, pv, func(ctx context.Context, change string) (metav1.Object, error) {
			return client.PersistentVolumes().Patch(ctx, pv.Name, types.MergePatchType, []byte(change), dry)
		}},
		{"persistentvolumeclaims", reflect.TypeFor[corev1.PersistentVolumeClaim](), nil, claim, ofClaim()},
		{"persistentvolumeclaims/status", reflect.TypeFor[corev1.PersistentVolumeClaim](), []string{
			"status.capacity", "status.capacity.storage", "status.allocatedResources", "status.allocatedResources.storage",
			"status.allocatedResourceStatuses", "status.allocatedResourceStatuses.storage",
		}, claim, ofClaim("status")},
	}
}

// try returns what becomes of one write of a target, and the answer.
func (x target) try(ctx context.Context, change string) (verdict, string) {
	after, err := x.patch(ctx, change)
	switch {
	case err != nil && strings.Contains(err.Error(), "ValidatingAdmissionPolicy 'flex-"):
		return refusedByPolicy, err.Error()
	case err != nil:
		return refusedByKubernetes, err.Error()
	}
	if equality.Semantic.DeepEqual(written(after), written(x.now)) {
		return changesNothing, ""
	}
	return changesIt, ""
}

// written returns an object without what Kubernetes writes on it by itself, at any time: from 1.37 on
// the condition Unused (setUnusedCondition in pkg/controller/volume/pvcprotection), with a new
// version of the object.
func written(object metav1.Object) metav1.Object {
	if claim, ok := object.(*corev1.PersistentVolumeClaim); ok {
		claim.Status.Conditions = slices.DeleteFunc(claim.Status.Conditions, isUnused)
	}
	object.SetManagedFields(nil)
	object.SetResourceVersion("")
	return object
}

func isUnused(c corev1.PersistentVolumeClaimCondition) bool {
	return c.Type == corev1.PersistentVolumeClaimUnused
}

// verdicts tries every field of a target, prints what becomes of it, and returns that by path.
func (w *world) verdicts(x target) map[string]verdict {
	w.t.Helper()
	out := map[string]verdict{}
	var table strings.Builder
	columns := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	for _, f := range fieldsOf(x.of) {
		if len(f.path) == 0 {
			continue
		}
		best, said := changesNothing, ""
		for _, change := range f.patches() {
			if v, answer := x.try(w.ctx(), change); v > best {
				best, said = v, answer
			}
		}
		out[f.String()] = best
		_, _ = fmt.Fprintf(columns, "%s\t%s\t%s\t%.160s\n", x.name, f, best, strings.ReplaceAll(said, "\n", " "))
	}
	_ = columns.Flush()
	w.t.Logf("every field as %s:\n%s", theDispatcher.UserName, table.String())
	return out
}

// Of all fields of a PV and of a claim that a PATCH reaches, the dispatcher's token writes those
// that the dispatcher needs. Annotations, finalizers and conditions, of which it may write some,
// are in the tables of sequences.
func TestDispatchersTokenWritesOnlyTheListedFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "fields")
	for _, x := range w.patchable() {
		found := w.verdicts(x)
		if len(found) < 100 {
			t.Errorf("%s: only %d fields were tried", x.name, len(found))
		}
		for _, path := range slices.Sorted(maps.Keys(found)) {
			if slices.Contains(x.may, path) != (found[path] == changesIt) {
				t.Errorf("%s: %s %s", x.name, path, found[path])
			}
		}
	}
}
