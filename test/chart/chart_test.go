package chart

import (
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
)

// everything turns on what can be.
const everything = `
configNamespaces: {team-a: {}}
nodeDirectories: {enabled: true, btrfs: true}
claimCreator: {enabled: true}
audit: {enabled: true}
networkPolicies: {enabled: true, apiServer: [198.51.100.0/24], storage: [192.0.2.0/24]}
classes: {gold: {parameters: {flex-provisioner.io/config-namespace: team-a}, config: {image: x, service-account-name: account, batch-size: 2}}}
`

// Whoever installs by Helm has what deploy has.
func TestValuesRenderWhatTheirKustomizationDoes(t *testing.T) {
	for name, c := range map[string]struct{ values, kustomization string }{
		"default":          {"{}", "resources: [../base]"},
		"node directories": {"nodeDirectories: {enabled: true}", "resources: [../node-directories]"},
		"btrfs":            {"nodeDirectories: {enabled: true, btrfs: true}", "resources: [../node-directories]\ncomponents: [../node-directories/btrfs]"},
		"claim creator":    {"claimCreator: {enabled: true}", "resources: [../base]\ncomponents: [../claim-creator]"},
		"dispatcher nodes": {`nodeSelector: {node-restriction.kubernetes.io/flex-dispatcher: "true"}`, "resources: [../base]\ncomponents: [../dispatcher-nodes]"},
		"network policies": {
			"networkPolicies: {enabled: true, apiServer: [198.51.100.0/24], storage: [192.0.2.0/24]}",
			"resources: [../base]\ncomponents: [../network-policies]",
		},
		"network policies of a cluster": {
			"networkPolicies: {enabled: true, apiServer: [203.0.113.10/32], storage: [203.0.113.64/26], storagePorts: [13000, 13776]}",
			block(t, "docs/operate.md", "components: [../network-policies]"),
		},
		"audit": {"audit: {enabled: true}", "resources: [../base]\ncomponents: [../audit]"},
		"audit on chosen nodes": {
			"audit: {enabled: true}\nnodeSelector: {disk: ssd}",
			"resources: [../base]\ncomponents: [../audit]\npatches: [{target: {kind: Deployment}, patch: '- {op: add, path: /spec/template/spec/nodeSelector/disk, value: ssd}'}]",
		},
		"monitoring": {"monitoring: {labels: {release: RELEASE}}", block(t, "docs/monitor.md", "components: [../monitoring]")},
		"image of the audit": {
			"audit: {enabled: true}\nregistry: registry.example.org/flex\nimage: {tag: v1.2.3}\nscriptImage: {tag: v1.2.3}",
			"resources: [../base]\ncomponents: [../audit]\nimages: [{name: localhost/flex-dispatcher, newName: registry.example.org/flex/flex-dispatcher, newTag: v1.2.3}]" +
				"\npatches:\n" + scriptImage("flex-dispatcher", 0) + scriptImage("flex-dispatcher-audit", 2),
		},
		"image": {
			"registry: registry.example.org/flex\nimage: {tag: v1.2.3}\nscriptImage: {tag: v1.2.3}",
			"resources: [../base]\nimages: [{name: localhost/flex-dispatcher, newName: registry.example.org/flex/flex-dispatcher, newTag: v1.2.3}]" +
				"\npatches:\n" + scriptImage("flex-dispatcher", 0),
		},
		"all": {
			"nodeDirectories: {enabled: true, btrfs: true}\nclaimCreator: {enabled: true}\nnetworkPolicies: {enabled: true, apiServer: [198.51.100.0/24], storage: [192.0.2.0/24]}",
			"resources: [../node-directories]\ncomponents: [../node-directories/btrfs, ../claim-creator, ../network-policies]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := kustomize(t, c.kustomization)
			byHelm(want)
			got := decode(t, render(t, c.values))
			if len(got) < 25 {
				t.Errorf("only %d objects", len(got))
			}
			if diff := cmp.Diff(folded(anyOf(want)), folded(anyOf(got))); diff != "" {
				t.Errorf("the kustomization has (-), the chart (+):\n%s", diff)
			}
		})
	}
}

func anyOf(objects map[string]object) object {
	out := object{}
	for key, o := range objects {
		out[key] = o
	}
	return out
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// block returns the block of a page that has a text.
func block(t *testing.T, page, text string) string {
	t.Helper()
	for _, m := range yamlBlock.FindAllStringSubmatch(strings.Join(file(t, page), "\n---\n"), -1) {
		if strings.Contains(m[1], text) {
			return m[1]
		}
	}
	t.Fatalf("%s has no block with %q", page, text)
	return ""
}

// The chart has no value for an audit of storages: the page has the patch.
func TestThePatchOfThePageLetsTheAuditListStorages(t *testing.T) {
	text := strings.Replace(block(t, "docs/audit.md", "components: [../audit]"), ", audit-storage.yaml", "", 1)
	made := fmt.Sprint(kustomize(t, text)["Deployment flex-system/flex-dispatcher-audit"])
	if !strings.Contains(made, "args:[audit --watch --script-image=localhost/flex-shell:dev --storage]") {
		t.Errorf("the audit is %s", made)
	}
}

// With default values the policies and the roles are the texts that the project's tests attack, byte
// for byte.
func TestPoliciesAndRolesAreTheFilesOfTheBase(t *testing.T) {
	rendered := "\n---\n" + strings.Join(render(t, "{}"), "\n---\n") + "\n---\n"
	found := 0
	for _, name := range guards(t) {
		for _, text := range file(t, name) {
			found++
			if !strings.Contains(rendered, "\n---\n"+strings.TrimSpace(text)+"\n") {
				t.Errorf("%s has this, the chart does not:\n%s", name, text)
			}
		}
	}
	if found < 25 {
		t.Errorf("only %d objects were compared", found)
	}
}

// guards returns the files of policies and roles of the base.
func guards(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, pattern := range []string{"*-policy.yaml", "*-rbac.yaml"} {
		found, err := filepath.Glob(filepath.Join(repository, "deploy", "base", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			out = append(out, filepath.Join("deploy", "base", filepath.Base(path)))
		}
	}
	return out
}

// A namespace of configs is added to every list of the policies that docs/configuration.md names,
// and changes nothing else: the policies then guard more, and allow no account more.
func TestConfigNamespaceIsAppendedToTheListsOfThePolicies(t *testing.T) {
	before := decode(t, render(t, "{}"))
	widened := render(t, "configNamespaces: {team-b: {create: false}, team-a: {}}")
	after := decode(t, widened)
	for _, added := range []string{"Namespace team-a", "RoleBinding team-a/flex-dispatcher-configs", "RoleBinding team-b/flex-dispatcher-configs"} {
		if after[added] == nil {
			t.Errorf("there is no %s", added)
		}
		delete(after, added)
	}
	var changed []string
	for name, o := range after {
		if cmp.Equal(before[name], o) {
			continue
		}
		changed = append(changed, name)
		narrow := strings.NewReplacer(", 'team-a', 'team-b'", "", "--config-namespaces=team-a,team-b", "")
		if o["kind"] == "ValidatingAdmissionPolicy" && !cmp.Equal(before[name], replaced(o, narrow)) {
			t.Errorf("%s has changed elsewhere, too:\n%s", name, cmp.Diff(before[name], o))
		}
	}
	if !maps.Equal(keys(before), keys(after)) {
		t.Errorf("other objects are there: %s", cmp.Diff(keys(before), keys(after)))
	}
	want := append(policiesOf(t, namedByTheDocs(t)), "Deployment flex-system/flex-dispatcher")
	slices.Sort(want)
	slices.Sort(changed)
	if diff := cmp.Diff(want, changed); diff != "" {
		t.Errorf("docs/configuration.md names (-), the chart changes (+):\n%s", diff)
	}
	text := strings.Join(widened, "\n---\n")
	if cel, selectors := strings.Count(text, "'flex-provisioner-node', 'team-a', 'team-b'"), strings.Count(text, `flex-provisioner-node, "team-a", "team-b"`); cel != 7 || selectors != 5 {
		t.Errorf("the names are in %d lists of CEL and %d of selectors", cel, selectors)
	}
}

func keys(objects map[string]object) map[string]bool {
	out := map[string]bool{}
	for key := range objects {
		out[key] = true
	}
	return out
}

// replaced replaces texts in all strings of an object, and takes the added names out of its lists.
func replaced(value any, by *strings.Replacer) any {
	switch v := value.(type) {
	case object:
		out := object{}
		for key, one := range v {
			out[key] = replaced(one, by)
		}
		return out
	case []any:
		out := []any{}
		for _, one := range v {
			if one != "team-a" && one != "team-b" {
				out = append(out, replaced(one, by))
			}
		}
		return out
	case string:
		return by.Replace(v)
	}
	return value
}

var policyFile = regexp.MustCompile("`([a-z-]+-policy.yaml)`")

// namedByTheDocs returns the policies that must name another namespace of configs.
func namedByTheDocs(t *testing.T) []string {
	t.Helper()
	for line := range strings.Lines(strings.Join(file(t, "docs/configuration.md"), "")) {
		if strings.HasPrefix(line, "| another namespace of configs |") {
			var out []string
			for _, m := range policyFile.FindAllStringSubmatch(line, -1) {
				out = append(out, m[1])
			}
			return out
		}
	}
	t.Fatal("docs/configuration.md has no row for another namespace of configs")
	return nil
}

// policiesOf returns the policies of files that name the namespace for directories of nodes.
func policiesOf(t *testing.T, files []string) []string {
	t.Helper()
	var out []string
	for _, name := range files {
		for _, text := range file(t, filepath.Join("deploy", "base", name)) {
			if strings.Contains(text, "\nkind: ValidatingAdmissionPolicy\n") && strings.Contains(text, "flex-provisioner-node") {
				out = append(out, slices.Collect(maps.Keys(decode(t, []string{text})))...)
			}
		}
	}
	return out
}

// The API server would drop an unknown field silently, or refuse the whole release.
func TestEveryObjectIsOneOfKubernetes(t *testing.T) {
	decoder := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()
	for _, values := range []string{"{}", everything} {
		for _, text := range render(t, values) {
			if strings.TrimSpace(strings.TrimPrefix(text, "---")) == "" {
				continue
			}
			if _, _, err := decoder.Decode([]byte(text), nil, nil); err != nil {
				t.Errorf("%v in:\n%s", err, text)
			}
		}
	}
}

// Helm runs a hook at times that no reader of the manifests sees, and nothing removes what it made.
func TestNoObjectIsAHookOrASecret(t *testing.T) {
	for name, o := range decode(t, render(t, everything)) {
		if o["kind"] == "Secret" || strings.Contains(fmt.Sprint(o), "helm.sh/hook") {
			t.Errorf("%s", name)
		}
		if keeps := strings.Contains(fmt.Sprint(o["metadata"]), "helm.sh/resource-policy:keep"); keeps != (o["kind"] == "Namespace") {
			t.Errorf("%s is kept: %v", name, keeps)
		}
	}
}

// scriptImage is a patch of a kustomization, which sets the image for scripts of a Deployment.
func scriptImage(deployment string, argument int) string {
	return fmt.Sprintf("- target: {kind: Deployment, name: %s}\n  patch: '- {op: replace, path: /spec/template/spec/containers/0/args/%d, "+
		"value: --script-image=registry.example.org/flex/flex-shell:v1.2.3}'\n", deployment, argument)
}
