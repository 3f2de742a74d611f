package main

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// against returns why a published schema refuses a document, nil if it accepts it.
func against(t *testing.T, name string, document any) error {
	t.Helper()
	var schema spec.Schema
	if err := json.Unmarshal([]byte(pageText(t, "docs/schemas/"+name+".json")), &schema); err != nil {
		t.Fatal(err)
	}
	return validate.AgainstSchema(&schema, document, strfmt.Default)
}

// filesOf returns the files of a golden Job: the request, and the PVs.
func filesOf(t *testing.T, path string) (request object, pvs []any) {
	t.Helper()
	var job batchv1.Job
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &job); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	files := job.Spec.Template.Annotations
	request = decoded(t, files[jobs.AnnRequest]).(object)
	if request["verb"] == string(contract.List) {
		return request, nil // there is no PV
	}
	pv := decoded(t, files[jobs.AnnPV]).(object)
	if pv["kind"] == "List" {
		return request, pv["items"].([]any)
	}
	return request, []any{pv}
}

func TestTheSchemasAcceptTheFilesOfEveryGoldenJob(t *testing.T) {
	found, verbs := 0, map[any]bool{}
	for _, dir := range []string{"dispatcher/jobs", "audit/run"} {
		paths, err := filepath.Glob(filepath.Join(root, dir, "testdata/job-*.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			request, pvs := filesOf(t, path)
			if err := against(t, "request", request); err != nil {
				t.Errorf("the request of %s: %v", path, err)
			}
			for _, pv := range pvs {
				if err := against(t, "pv", pv); err != nil {
					t.Errorf("a PV of %s: %v", path, err)
				}
			}
			found, verbs[request["verb"]] = found+1, true
		}
	}
	if found < 8 || len(verbs) != len(contract.Verbs()) {
		t.Errorf("%d golden Jobs, of the verbs %v", found, verbs)
	}
}

// broken calls each with copies of a document that have one fault each: a field is missing that is
// required, or has another type.
func broken(t *testing.T, schema, document object, each func(fault string)) {
	t.Helper()
	properties, _ := schema["properties"].(object)
	required, _ := schema["required"].([]any)
	for _, name := range required {
		value := document[name.(string)]
		delete(document, name.(string))
		each("without " + name.(string))
		document[name.(string)] = value
	}
	for name, property := range properties {
		value, there := document[name]
		if !there {
			continue
		}
		var other any = "text"
		if property.(object)["type"] == "string" {
			other = object{"a": 1}
		}
		document[name] = other
		each("of another type: " + name)
		if document[name] = value; property.(object)["type"] == "object" {
			broken(t, property.(object), value.(object), func(fault string) { each(name + ": " + fault) })
		}
	}
}

func TestTheSchemasRefuseFilesWithAFault(t *testing.T) {
	request, pvs := filesOf(t, filepath.Join(root, "dispatcher/jobs/testdata/job-every-key.yaml"))
	one := request["requests"].([]any)[0].(object)
	ofRequest := decoded(t, pageText(t, "docs/schemas/request.json")).(object)
	ofOne := ofRequest["properties"].(object)["requests"].(object)["items"].(object)
	ofPV := decoded(t, pageText(t, "docs/schemas/pv.json")).(object)
	faults := 0
	refuses := func(name string, document any) func(string) {
		return func(fault string) {
			if faults++; against(t, name, document) == nil {
				t.Errorf("%s is accepted %s", name, fault)
			}
		}
	}
	broken(t, ofRequest, request, refuses("request", request))
	broken(t, ofOne, one, refuses("request", request))
	broken(t, ofPV, pvs[0].(object), refuses("pv", pvs[0]))
	for field, text := range map[string]string{"version": "flex-provisioner.io/v2", "verb": "resize"} {
		other := maps.Clone(request)
		other[field] = text
		_, err := contract.DecodeRequests([]byte(encoded(t, other)))
		if refuses("request", other)(field + " " + text); err == nil {
			t.Errorf("%s %s is decoded", field, text)
		}
	}
	if faults < 40 {
		t.Errorf("only %d faults were tried", faults)
	}
	one["ofANewerDispatcher"] = true
	if err := against(t, "request", request); err != nil {
		t.Errorf("a field of a newer dispatcher: %v", err)
	}
}

func TestTheSchemaOfAResultAgreesWithTheDispatcher(t *testing.T) {
	for line, isResult := range map[string]bool{
		`{"uid":"u","code":0}`:                             true,
		`{"uid":"u","code":65,"message":"claim: no"}`:      true,
		`{"uid":"u","code":0,"capacity":"2Gi"}`:            true,
		`{"uid":"u","code":0,"capacity":2147483648}`:       true,
		`{"uid":"u","code":0,"capacity":"1.5e3","mine":1}`: true,
		`{"uid":"u"}`:                            false,
		`{"code":0}`:                             false,
		`{"uid":"","code":0}`:                    false,
		`{"uid":7,"code":0}`:                     false,
		`{"uid":"u","code":"0"}`:                 false,
		`{"uid":"u","code":null}`:                false,
		`{"uid":"u","code":0.5}`:                 false,
		`{"uid":"u","code":0,"message":["no"]}`:  false,
		`{"uid":"u","code":0,"capacity":"2 Gi"}`: false,
		`["u",0]`:                                false,
	} {
		read, err := len(contract.DecodeResults(line)) == 1, against(t, "result", decoded(t, line))
		if read != isResult || (err == nil) != isResult {
			t.Errorf("%s: the dispatcher reads it: %t; the schema: %v", line, read, err)
		}
	}
}

// values are some of each key that has a form: first those that are valid, then those that are not.
var values = map[string][2][]string{
	"image":                     {{"registry/filer:v1"}, {""}},
	"image-pull-policy":         {{"Always", "Never"}, {"always", "Sometimes"}},
	"verbs":                     {{"provision", "provision,delete", "provision, delete, expand,list"}, {"provision,resize", "provision delete", "provision,"}},
	"node-selector":             {{"a=b", "a.example/b=c,d=", "a=b, c=d"}, {"a", "a=b,c", "=b", "a=b c"}},
	"run-on":                    {{"any", "selected-node"}, {"all", "Any"}},
	"node-gone":                 {{"wait", "any-node", "forget"}, {"delete"}},
	"env-from-secret":           {{"filer", "filer.login-1"}, {"Filer", "filer_login", "-filer", "filer."}},
	"files-from-secret":         {{"filer"}, {"a/b", "a b"}},
	"timeout":                   {{"90s", "10m", "1h30m", "1.5h"}, {"10", "ten minutes", "-5m", "10 m"}},
	"keep-deleted":              {{"168h", "0", "0s", "1h30m"}, {"7d", "168", "-1h", "a week"}},
	"keep-deleted-limit":        {{"500Gi", "1.5Ti", "2000Mi", "2000000000"}, {"0", "500", "2000000", "100m", "-1Gi", "1 Gi", "10GB", "none"}},
	"max-attempts":              {{"0", "7"}, {"-1", "many", "1.5"}},
	"max-parallel":              {{"1", "100"}, {"0", "-2", "3x"}},
	"batch-size":                {{"1", "16", "64"}, {"0", "65", "100", "a"}},
	"write-pv":                  {{"container", "dispatcher"}, {"image"}},
	"data-sources":              {{"PersistentVolumeClaim"}, {"VolumeSnapshot"}},
	"volume-attributes-classes": {{"true", "false"}, {"yes", "True"}},
	"namespaces":                {{"team-a", "team-a, ci-*", "a\nb", "*"}, {"", "Team", "a;b", "a=b"}},
	"request-keys":              {{"team", "example.com/team, tier"}, {"a b", "/a", "team,"}},
}

func configOf(data map[string]string) object {
	all := object{}
	for key, value := range data {
		all[key] = value
	}
	return object{
		"apiVersion": "v1", "kind": "ConfigMap", "data": all,
		"metadata": object{"name": "filer", "labels": object{contract.LabelType: contract.TypeConfig, contract.LabelStorageClass: "gold"}},
	}
}

// mustAgree fails the test unless the parser and the schema judge a config as wanted.
func mustAgree(t *testing.T, data map[string]string, what string, isValid bool) {
	t.Helper()
	src := config.Source{Class: "gold", Reclaim: "Retain", Binding: "WaitForFirstConsumer", Data: data}
	_, faults := config.Parse(src, config.Dispatcher{Provisioner: contract.ProvisionerName})
	faults = append(faults, config.NamespacesFaults(&corev1.ConfigMap{Data: data})...)
	err := against(t, "config", configOf(data))
	if (len(faults) == 0) != isValid || (err == nil) != isValid {
		t.Errorf("%s: valid: %t; the dispatcher: %v; the schema: %v", what, isValid, faults, err)
	}
}

func TestTheSchemaOfAConfigAgreesWithTheDispatcher(t *testing.T) {
	least := map[string]string{"image": "i", "service-account-name": "s", "verbs": "provision,delete"}
	for key := range forms {
		tried := values[key]
		if len(tried[0]) == 0 || len(tried[1]) == 0 {
			t.Errorf("values, in this file, has no valid or no invalid ones of %s", key)
		}
		for i, isValid := range []bool{true, false} {
			for _, value := range tried[i] {
				data := maps.Clone(least)
				data[key] = value
				mustAgree(t, data, key+": "+value, isValid)
			}
		}
	}
	for what, data := range map[string]map[string]string{
		"no image": {"service-account-name": "s"}, "no ServiceAccount": {"image": "i"}, "no ServiceAccount, the container writes": {"image": "i", "write-pv": "container"},
	} {
		mustAgree(t, data, what, false)
	}
	mustAgree(t, map[string]string{"image": "i", "write-pv": "dispatcher", "a-property": "of the image"}, "no ServiceAccount, the dispatcher writes", true)
}

func TestTheSchemaOfAConfigAcceptsTheShippedOnes(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(root, "configmaps/*.yaml"))
	if err != nil || len(paths) < 15 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for doc := range bytes.SplitSeq(text, []byte("\n---\n")) {
			var document object
			if err := yaml.Unmarshal(doc, &document); err != nil {
				t.Fatal(err)
			}
			if document["kind"] != "ConfigMap" || !strings.Contains(string(doc), contract.TypeConfig) {
				continue
			}
			if err := against(t, "config", document); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}
