package config_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// mostAllocated is how much memory may be allocated for any one source.
const mostAllocated = 48 << 20

// allocated returns how many bytes a function allocates.
func allocated(work func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// templated sets a template with a text at the end.
func templated(text string) func(*config.Source) {
	return set("pod-template", "spec:\n  enableServiceLinks: false\n"+text)
}

func TestAnchorsAndAliasesInATemplateAreRefused(t *testing.T) {
	for name, tt := range map[string]struct{ text, words string }{
		"an alias":              {"  hostname: &a x\n  subdomain: *a\n", "line 3 has the anchor &a"},
		"an anchor alone":       {"  hostname: &a x\n", "line 3 has the anchor &a"},
		"of a mapping":          {"  nodeSelector: &a {x: y}\n", "line 3 has the anchor &a"},
		"of a key":              {"  nodeSelector: {&a x: y}\n", "line 3 has the anchor &a"},
		"a merge":               {"  nodeSelector: &a {x: y}\n  securityContext: {<<: *a}\n", "line 3 has the anchor &a"},
		"one that holds itself": {"  nodeSelector: &a {x: *a}\n", "line 3 has the anchor &a"},
		"in a list of lists":    {"  containers: [{name: x, args: [a, &b b]}]\n", "line 3 has the anchor &b"},
	} {
		t.Run(name, func(t *testing.T) {
			mustFault(t, faultsOf(source(templated(tt.text))), map[string][]string{"data[pod-template]": {tt.words, "Remedy: write out"}})
		})
	}
	mustFault(t, faultsOf(source(set("pod-template", "*a"))), map[string][]string{"data[pod-template]": {"unknown anchor"}})
}

// The first of two documents once counted, and if that was empty the whole template was ignored, its
// node selectors included.
func TestTemplateOfTwoDocumentsIsRefused(t *testing.T) {
	const spec = "spec: {nodeSelector: {a: b}}\n"
	for _, text := range []string{"---\n---\n" + spec, spec + "---\n" + spec, "# comment\n--- {}\n---\n" + spec} {
		mustFault(t, faultsOf(source(set("pod-template", text))), map[string][]string{
			"data[pod-template]": {"belongs to a second YAML document"},
		})
	}
	parse(t, source(set("pod-template", "---\n"+spec+"---\n")))
}

// Of what is too large only that is said.
func TestWhatIsTooLargeIsRefusedByItsSize(t *testing.T) {
	long := func(size int) string { return strings.Repeat("x", size) }
	const data, of, properties = "data", "data[pod-template]", "data and the class's parameters"
	const tooDeep = "deeper than the limit of 50 levels"
	nested := func(open, end string) string {
		return strings.Repeat(open, 51) + "x" + strings.Repeat(end, 51)
	}
	for name, tt := range map[string]struct {
		change func(*config.Source)
		want   map[string][]string
	}{
		"all data":           {set("ca", long(1<<20)), map[string][]string{data: {"must have at most 229376 bytes", "files-from-secret"}}},
		"data not kept":      {func(s *config.Source) { s.Data, s.DataSize = nil, 1<<20 }, map[string][]string{data: {`"1048576 bytes"`}}},
		"a template":         {set("pod-template", "#"+long(64<<10)), map[string][]string{of: {`"65537 bytes"`, "at most 65536 bytes"}}},
		"an image":           {set("image", long(5<<10)), map[string][]string{"data[image]": {"at most 4096 bytes"}}},
		"verbs":              {set("verbs", strings.Repeat("a,", 4<<10)), map[string][]string{"data[verbs]": {"at most 4096 bytes"}}},
		"properties":         {set("ca", long(129<<10)), map[string][]string{properties: {"131072"}}},
		"parameters":         {param("ca", long(129<<10)), map[string][]string{properties: {"131072"}}},
		"several":            {func(s *config.Source) { s.Data["image"], s.Data["run-on"] = long(5<<10), long(6<<10) }, map[string][]string{"data[image]": nil, "data[run-on]": nil}},
		"a template as JSON": {templated("  hostname: " + strings.Repeat("<", 30<<10)), map[string][]string{of: {"the limit is 131072"}}},
		"many containers":    {templated("  containers: [" + strings.Repeat("{name: x},", 251) + "]"), map[string][]string{of: {"the list at line 3 has 251 entries, and the limit is 250"}}},
		"a deep template":    {templated("  hostname: " + nested("[", "]")), map[string][]string{of: {tooDeep}}},
		"deep maps":          {templated("  hostname: " + nested("{a: ", "}")), map[string][]string{of: {tooDeep}}},
		"deep blocks":        {templated("  hostname:\n   " + nested("- ", "")), map[string][]string{of: {tooDeep}}},
		"deep in a field that takes anything": {
			set("pod-template", "metadata: {managedFields: [{fieldsV1: "+nested("{a: ", "}")+"}]}"),
			map[string][]string{of: {tooDeep}},
		},
	} {
		t.Run(name, func(t *testing.T) { mustFault(t, faultsOf(source(tt.change)), tt.want) })
	}
}

func TestWhatIsNotTooLargeIsAccepted(t *testing.T) {
	parse(t, source(set("ca", strings.Repeat("x", 120<<10)), templated("# "+strings.Repeat("x", 60<<10))))
}

func TestFaultsAreFew(t *testing.T) {
	faults := faultsOf(source(set("node-selector", strings.Repeat("x,", 1000))))
	if last := faults[len(faults)-1]; len(faults) != 51 || !strings.Contains(last.Error(), "only the first 50 are listed") {
		t.Errorf("%d faults, the last is %v", len(faults), last)
	}
}

// The caches keep no data that are too large. A mark on a ConfigMap with data is none.
func TestSizeOfDroppedDataIsRead(t *testing.T) {
	cm := configMap("gold", nil, nil)
	cm.Annotations = map[string]string{config.AnnCut: "1048576"}
	if got := config.SourceOf(cm, class("gold", corev1.PersistentVolumeReclaimRetain)).DataSize; got != 1<<20 {
		t.Errorf("the size is %d", got)
	}
	cm.Data = map[string]string{"image": "x"}
	if got := config.SourceOf(cm, class("gold", corev1.PersistentVolumeReclaimRetain)).DataSize; got != 0 {
		t.Errorf("the size is %d although there are data", got)
	}
}

// A small ConfigMap once cost hundreds of MiB, and a larger one the dispatcher.
func TestNoConfigMapCostsMuchMemory(t *testing.T) {
	many := func(s *config.Source) {
		for i := range 60_000 {
			s.Data[fmt.Sprint("k", i)] = ""
		}
	}
	colliding := func(s *config.Source) {
		for i := range 1 << 13 {
			name := []byte(strings.Repeat(".", 13))
			for bit := range name {
				if i&(1<<bit) != 0 {
					name[bit] = '-'
				}
			}
			s.Data[string(name)] = ""
		}
	}
	for name, change := range map[string]func(*config.Source){
		"1 MiB of a template":    templated("  hostname: " + strings.Repeat("x", 1<<20)),
		"many nulls":             templated("  nodeSelector: {" + nulls() + "}\n"),
		"many unknown fields":    templated(unknown()),
		"text that JSON escapes": templated("  hostname: " + strings.Repeat("<", 60_000)),
		"many keys":              many,
		"keys of one variable":   colliding,
		"many verbs":             set("verbs", strings.Repeat("a,", 90_000)),
		"many labels":            set("node-selector", strings.Repeat("a=,", 60_000)),
		"many request-keys":      set("request-keys", strings.Repeat("a,", 90_000)),
	} {
		t.Run(name, func(t *testing.T) {
			src := source(change)
			bytes := allocated(func() { config.Parse(src, config.Dispatcher{Provisioner: contract.ProvisionerName}) })
			t.Logf("%d KiB", bytes>>10)
			if bytes > mostAllocated {
				t.Errorf("%d MiB are allocated for %d KiB of data", bytes>>20, config.DataSize(src.Data)>>10)
			}
		})
	}
}

func nulls() string {
	var out strings.Builder
	for i := range 8_000 {
		fmt.Fprintf(&out, "a%d: ,", i)
	}
	return out.String()
}

func unknown() string {
	var out strings.Builder
	for i := range 6_000 {
		fmt.Fprintf(&out, "  a%d: 1\n", i)
	}
	return out.String()
}

// A text of a few characters in one ConfigMap once stopped the classes of every namespace: to parse
// it took minutes. Every field of a pod that is a quantity is tried.
func TestQuantitiesThatAreCostlyToParseAreRefused(t *testing.T) {
	const costly = "1e-100"
	fields := quantitiesOf(reflect.TypeFor[corev1.PodTemplateSpec](), costly)
	if len(fields) < 10 {
		t.Fatalf("a pod has %d quantities", len(fields))
	}
	for _, value := range fields {
		template, err := json.Marshal(value)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(string(template), func(t *testing.T) {
			mustFault(t, faultsOf(source(set("pod-template", string(template)))), map[string][]string{"data[pod-template]": {costly, "two in its exponent"}})
		})
	}
	for _, text := range []string{"  nodeSelector: {limits: 12e345x}\n", "  containers: [{name: provisioner, env: [{name: COMMIT, value: 1234e567}], resources: {limits: {memory: 1e9}}}]\n"} {
		mustFault(t, faultsOf(source(templated(text))), nil)
	}
}

// quantitiesOf returns, for each quantity that a type has at any depth, a value as in JSON in which
// only that quantity is set.
func quantitiesOf(of reflect.Type, text string) []any {
	var out []any
	switch {
	case of == reflect.TypeFor[resource.Quantity]():
		return []any{text}
	case of.Kind() == reflect.Pointer:
		return quantitiesOf(of.Elem(), text)
	case of.Kind() == reflect.Slice:
		for _, value := range quantitiesOf(of.Elem(), text) {
			out = append(out, []any{value})
		}
	case of.Kind() == reflect.Map:
		for _, value := range quantitiesOf(of.Elem(), text) {
			out = append(out, map[string]any{"memory": value})
		}
	case of.Kind() == reflect.Struct:
		for field := range of.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			for _, value := range quantitiesOf(field.Type, text) {
				if name != "" { // or its fields are those of the struct that embeds it
					value = map[string]any{name: value}
				}
				out = append(out, value)
			}
		}
	}
	return out
}
