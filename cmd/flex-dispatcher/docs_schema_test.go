package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// object is a JSON Schema, or a part of one.
type object = map[string]any

// schemas returns the schemas of docs/schemas. They are made of the code and of the pages' tables,
// and use only the keywords that drafts from 4 to 2020-12 have in common.
func schemas(t *testing.T) map[string]object {
	t.Helper()
	fields := meanings(t, contractPage, "variable", 1, 2)
	result := schemaOf(reflect.TypeFor[contract.Result](), "", meanings(t, contractPage, "field of a result", 0, 1))
	result["properties"].(object)["uid"].(object)["minLength"] = 1
	return map[string]object{
		"request": titled("/etc/flex/request.json of the contract "+contract.Version, schemaOf(reflect.TypeFor[contract.Requests](), "", fields)),
		"pv":      titled("/etc/flex/pv.json of the contract "+contract.Version+". In a batch it is a v1 List of such objects. On list it is empty", schemaOfPV(t)),
		"result":  titled("a result of the contract "+contract.Version+": a line in the termination message", result),
		"config":  titled("a provisioner ConfigMap. kubectl flex validate finds more faults", schemaOfConfig(t)),
	}
}

// A schema that differs from the code would refuse what works, or accept what does not.
func TestTheSchemasAreThoseOfTheCode(t *testing.T) {
	for name, schema := range schemas(t) {
		var text bytes.Buffer
		out := json.NewEncoder(&text)
		out.SetEscapeHTML(false)
		out.SetIndent("", "  ")
		if err := out.Encode(schema); err != nil {
			t.Fatal(err)
		}
		fixture.GoldenFile(t, filepath.Join(root, "docs/schemas", name+".json"), text.Bytes())
	}
}

func titled(title string, schema object) object {
	schema["$schema"], schema["title"] = "https://json-schema.org/draft/2020-12/schema", title
	return schema
}

var link = regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)

// meanings returns what a column of a table says of the names in another one, without its links.
func meanings(t *testing.T, page, name string, names, column int) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, row := range tableOf(t, page, name).rows {
		for _, field := range spans(row[names]) {
			out[field] = link.ReplaceAllString(row[column], "$1")
		}
	}
	return out
}

// texts are the fields of a request that have one of a few texts. An image refuses any other.
var texts = map[string][]string{
	"version": {contract.Version}, "verb": words(contract.Verbs()...), "source.kind": {contract.SourceClaim},
}

func words[T ~string](in ...T) (out []string) {
	for _, word := range in {
		out = append(out, string(word))
	}
	return out
}

// schemaOf returns the schema of what encoding/json writes of a type. A field without omitempty is
// required. Any other field is accepted: a newer dispatcher may add some.
func schemaOf(typ reflect.Type, path string, meanings map[string]string) object {
	switch {
	case typ == reflect.TypeFor[contract.Capacity]():
		return object{"type": []string{"string", "integer"}, "pattern": `^[0-9]+(\.[0-9]+)?([KMGTPE]i|[mkMGTPE]|[eE][+-]?[0-9]{1,2})?$`}
	case typ.Kind() == reflect.Pointer:
		return schemaOf(typ.Elem(), path, meanings)
	case typ.Kind() == reflect.Slice:
		return object{"type": "array", "items": schemaOf(typ.Elem(), path, meanings)}
	case typ.Kind() == reflect.Map:
		return object{"type": "object", "additionalProperties": schemaOf(typ.Elem(), path, meanings)}
	case typ.Kind() == reflect.Bool:
		return object{"type": "boolean"}
	case typ.Kind() == reflect.String:
		return object{"type": "string"}
	case typ.Kind() != reflect.Struct:
		return object{"type": "integer"}
	}
	properties, required := object{}, []string{}
	for field := range typ.Fields() {
		name, option, _ := strings.Cut(field.Tag.Get("json"), ",")
		below := path
		if field.Type.Kind() == reflect.Pointer {
			below += name + "."
		}
		property := schemaOf(field.Type, below, meanings)
		if property["description"] = meanings[path+name]; texts[path+name] != nil {
			property["enum"] = texts[path+name]
		}
		if properties[name] = property; option != "omitempty" {
			required = append(required, name)
		}
	}
	return object{"type": "object", "properties": properties, "required": required}
}

// schemaOfPV returns the schema of the skeleton of a PV, by one of a request with all that may be in
// it, and one with what always is.
func schemaOfPV(t *testing.T) object {
	t.Helper()
	cfg := fixture.Config(t, "Delete", nil)
	least := contract.Request{UID: fixture.UID, PVName: contract.PVName(fixture.UID), Namespace: "app", Name: "data", Class: "gold", Size: 1, VolumeMode: "Block", ReclaimPolicy: "Delete"}
	full := least
	full.AccessModes, full.MountOptions, full.AttributesClass = []string{"ReadWriteOnce"}, []string{"hard"}, "fast"
	schema := schemaFrom(skeletonOf(t, full, cfg), skeletonOf(t, least, cfg))
	annotations := schema["properties"].(object)["metadata"].(object)["properties"].(object)["annotations"].(object)["properties"].(object)
	said := meanings(t, contractPage, "annotation of the PV", 0, 1)
	for name := range annotations {
		annotations[name].(object)["description"] = said[name]
	}
	return schema
}

func skeletonOf(t *testing.T, r contract.Request, cfg config.Config) object {
	t.Helper()
	out := decoded(t, encoded(t, pvs.Skeleton(r, cfg, contract.ProvisionerName))).(object)
	delete(out, "status") // it is empty
	return out
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func decoded(t *testing.T, text string) (out any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

// constants are the fields of objects whose text says what the object is.
var constants = []string{"apiVersion", "kind"}

// schemaFrom returns the schema of two examples.
func schemaFrom(full, least any) object {
	switch full := full.(type) {
	case object:
		few, _ := least.(object)
		properties := object{}
		for name, value := range full {
			property := schemaFrom(value, few[name])
			if slices.Contains(constants, name) {
				property["enum"] = []any{value}
			}
			properties[name] = property
		}
		return object{"type": "object", "properties": properties, "required": slices.Sorted(maps.Keys(few))}
	case []any:
		return object{"type": "array", "items": schemaFrom(full[0], full[0])}
	default:
		return object{"type": "string"}
	}
}

// forms are the keys of a config whose values have a form. What depends on the class, on another
// key or on the dispatcher's flags is not said.
var forms = map[string]object{
	"image":                     {"minLength": 1},
	"image-pull-policy":         {"enum": words(corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever)},
	"verbs":                     {"pattern": listOf(strings.Join(words(contract.Verbs()...), "|"))},
	"node-selector":             {"pattern": listOf("[A-Za-z0-9][A-Za-z0-9./_-]*=[A-Za-z0-9._-]*")},
	"run-on":                    {"enum": words(config.RunAnywhere, config.RunOnSelected)},
	"node-gone":                 {"enum": words(config.WaitForNode, config.AnyNode, config.ForgetVolume)},
	"env-from-secret":           {"pattern": secretName},
	"files-from-secret":         {"pattern": secretName},
	"timeout":                   {"pattern": `^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`},
	"keep-deleted":              {"pattern": `^(0|([0-9]+(\.[0-9]+)?(ms|s|m|h))+)$`},
	"keep-deleted-limit":        {"pattern": `^([0-9]+(\.[0-9]+)?([kMGTPE]|[KMGTPE]i)|[0-9]{10,})$`},
	"max-attempts":              {"pattern": `^[0-9]+$`},
	"max-parallel":              {"pattern": `^[1-9][0-9]*$`},
	"batch-size":                {"pattern": `^([1-9]|[1-5][0-9]|6[0-4])$`},
	"write-pv":                  {"enum": words(config.ContainerWrites, config.DispatcherWrites)},
	"data-sources":              {"enum": []string{contract.SourceClaim}},
	"volume-attributes-classes": {"enum": []string{"true", "false"}},
	"namespaces":                {"pattern": "^[ \\n\\t,]*[a-z0-9*-]+([ \\n\\t,]+[a-z0-9*-]+)*[ \\n\\t,]*$"},
	"request-keys":              {"pattern": listOf("[A-Za-z0-9][A-Za-z0-9./_-]*")},
}

const secretName = `^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`

// listOf returns the pattern of a list that is separated by commas.
func listOf(word string) string { return `^ *(` + word + `) *(, *(` + word + `) *)*$` }

func schemaOfConfig(t *testing.T) object {
	t.Helper()
	said, properties := meanings(t, configurationPage, "key", 0, 2), object{}
	for _, key := range config.Keys() {
		properties[key] = object{"type": "string", "description": said[key]}
		maps.Copy(properties[key].(object), forms[key])
	}
	is := func(words ...string) object { return object{"enum": words} }
	data := object{
		"type": "object", "properties": properties, "additionalProperties": object{"type": "string"},
		"allOf": []object{
			{"anyOf": []object{{"required": []string{"image"}}, {"required": []string{"script"}}}},
			{"anyOf": []object{
				{"required": []string{"service-account-name"}},
				{"required": []string{"write-pv"}, "properties": object{"write-pv": is(string(config.DispatcherWrites))}},
			}},
		},
	}
	labels := object{"properties": object{contract.LabelType: is(contract.TypeConfig)}, "required": []string{contract.LabelType}}
	return object{
		"type": "object", "required": []string{"apiVersion", "kind", "metadata", "data"}, "properties": object{
			"apiVersion": is("v1"), "kind": is("ConfigMap"), "data": data,
			"metadata": object{"properties": object{"labels": labels}, "required": []string{"labels", "name"}},
		},
	}
}
