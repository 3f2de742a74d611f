package test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// The chart contains the files of these folders, and so follows every change of theirs.
func TestChartContainsTheFoldersOfDeploy(t *testing.T) {
	found, err := filepath.Glob(repository + "/deploy/chart/files/*")
	if err != nil || len(found) != 6 {
		t.Fatalf("%q, %v", found, err)
	}
	for _, link := range found {
		to, err := os.Readlink(link)
		if err != nil || to != "../../"+filepath.Base(link) {
			t.Errorf("%s leads to %q: %v", link, to, err)
		}
		content(t, "deploy/"+filepath.Base(link)+"/kustomization.yaml")
	}
}

// The chart appends names of namespaces to these two forms of a list, and knows no third.
const (
	celNamespaces      = "['flex-provisioner', 'flex-provisioner-node'"
	selectorNamespaces = "[flex-provisioner, flex-provisioner-node"
)

var configNamespace = regexp.MustCompile(`['\[ ]flex-provisioner(-node)?['\],]`)

// A list in another form would not have the namespaces of configs that the chart adds. What a pod
// on a node's directories may do is given to the one namespace, on purpose.
func TestPoliciesListNamespacesInFormsThatTheChartWidens(t *testing.T) {
	cel, selectors := 0, 0
	for _, file := range policyFiles(t) {
		if !strings.HasPrefix(file, "base/") {
			continue
		}
		for line := range strings.Lines(read(t, file)) {
			code, _, _ := strings.Cut(line, "# ")
			cel += strings.Count(code, celNamespaces)
			selectors += strings.Count(code, selectorNamespaces)
			code = strings.NewReplacer(celNamespaces, "", selectorNamespaces, "", "message:", "").Replace(code)
			if configNamespace.MatchString(code) && !strings.Contains(line, " message: ") && !strings.Contains(code, "of flex-provisioner,") {
				t.Errorf("%s names a namespace of configs outside of the lists %s…] and %s…]: %s", file, celNamespaces, selectorNamespaces, line)
			}
			if strings.Contains(code, "flex-provisioner-node' in request.userInfo.groups") != strings.Contains(code, "flex-provisioner-node'") {
				t.Errorf("%s allows more to the namespace flex-provisioner-node than before: %s", file, line)
			}
		}
	}
	if cel != 7 || selectors != 5 {
		t.Errorf("there are %d lists in CEL and %d in selectors, not 7 and 5: the tests of test/chart count them, too", cel, selectors)
	}
}

// schema is what is read of a JSON schema.
type schema struct {
	Type                 string             `json:"type"`
	AdditionalProperties any                `json:"additionalProperties"`
	Properties           map[string]*schema `json:"properties"`
}

// leaves adds the paths of the values that a schema knows. Each object of ours is closed.
func (s *schema) leaves(t *testing.T, prefix string, into map[string]bool) {
	t.Helper()
	for name, one := range s.Properties {
		switch path := prefix + name; {
		case path == "global", path == "enabled": // Helm's own, and that of a chart which depends on this one
		case one.AdditionalProperties == false:
			one.leaves(t, path+".", into)
		default:
			into[path] = true
		}
	}
}

// values returns the paths of the values that values.yaml has, as deep as the schema knows them.
func values(from map[string]any, prefix string, known, into map[string]bool) {
	for name, value := range from {
		path := prefix + name
		if inner, is := value.(map[string]any); is && !known[path] {
			values(inner, path+".", known, into)
			continue
		}
		into[path] = true
	}
}

var rowOfValue = regexp.MustCompile("(?m)^\\| `([A-Za-z.]+)` \\|")

// The page, the schema and the defaults know the same values, and few enough to be read.
func TestValuesOfTheChartAreThoseOfItsPageAndSchema(t *testing.T) {
	var s schema
	if err := json.Unmarshal([]byte(read(t, "chart", "values.schema.json")), &s); err != nil {
		t.Fatal(err)
	}
	if s.AdditionalProperties != false {
		t.Error("the schema is open")
	}
	known, set, rows := map[string]bool{}, map[string]bool{}, map[string]bool{}
	s.leaves(t, "", known)
	defaults := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(read(t, "chart", "values.yaml")), &defaults); err != nil {
		t.Fatal(err)
	}
	values(defaults, "", known, set)
	for _, m := range rowOfValue.FindAllStringSubmatch(read(t, "chart", "README.md"), -1) {
		rows[m[1]] = true
	}
	if !maps.Equal(known, set) || !maps.Equal(known, rows) {
		t.Errorf("the schema knows\n%q,\nvalues.yaml\n%q,\nREADME.md\n%q", sorted(known), sorted(set), sorted(rows))
	}
	if len(known) < 20 || len(known) > 30 {
		t.Errorf("%d values", len(known))
	}
}

func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
