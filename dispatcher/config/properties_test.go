package config_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

func TestEveryOtherKeyAndEveryParameterIsAProperty(t *testing.T) {
	cfg := parse(t, source(set("use-nfs-server", "10.10.2.4"), set("zone", " west\n"), param("fsType", "ext4"), param("type", "ssd")))
	want := map[string]string{"use-nfs-server": "10.10.2.4", "zone": " west\n", "fsType": "ext4", "type": "ssd"}
	if !maps.Equal(cfg.Properties, want) {
		t.Errorf("got %v, want %v: verbatim", cfg.Properties, want)
	}
}

func TestKeyThatIsNearlyOneOfOursIsAFault(t *testing.T) {
	for near, own := range map[string]string{
		"node-selectors": "node-selector", "nodeSelector": "node-selector", "NODE_SELECTOR": "node-selector",
		"node.selector": "node-selector", "nodeselector": "node-selector", "node-selecter": "node-selector",
		"nod-selector": "node-selector", "noed-selector": "node-selector", "node-sselector": "node-selector",
		"Image": "image", "images": "image", "imagePullPolicy": "image-pull-policy",
		"serviceAccountName": "service-account-name", "service-acount-name": "service-account-name",
		"Verbs": "verbs", "verb": "verbs", "runOn": "run-on", "timeouts": "timeout", "tiemout": "timeout",
		"podTemplate": "pod-template", "pod-templates": "pod-template", "maxAttempts": "max-attempts", "max-attempt": "max-attempts",
		"max_parallel": "max-parallel", "envFromSecret": "env-from-secret", "env-from-secrets": "env-from-secret",
		"files-from-secrets": "files-from-secret", "file-from-secret": "files-from-secret", "plugin.name": "plugin-name",
	} {
		t.Run(near, func(t *testing.T) {
			mustFault(t, faultsOf(source(set(near, "x"))), map[string][]string{"data[" + near + "]": {"did you mean " + own}})
		})
	}
}

func TestKeysThatAreNotNearlyOursAreProperties(t *testing.T) {
	for _, name := range []string{"mirage", "timezone", "run", "ion", "verbose", "selector", "node", "template", "nfs-image-path", "max"} {
		mustFault(t, faultsOf(source(set(name, "x"))), nil)
	}
	// A parameter of the class is never read as one of our keys.
	mustFault(t, faultsOf(source(param("nodeSelector", "x"), param("image", "x"))), nil)
}

func TestTwoNamesOfOneVariableAreAFault(t *testing.T) {
	for name, test := range map[string]struct {
		changes []func(*config.Source)
		path    string
		words   []string
	}{
		"two properties": {
			[]func(*config.Source){set("nfs-server", "a"), set("nfs.server", "b")},
			"data[nfs.server]",
			[]string{"FLEX_NFS_SERVER", "the key nfs-server"},
		},
		"a property and a parameter": {
			[]func(*config.Source){set("fs-type", "a"), param("FS_Type", "b")},
			"storageClass.parameters[FS_Type]",
			[]string{"FLEX_FS_TYPE", "the key fs-type"},
		},
		"two parameters": {
			[]func(*config.Source){param("pool", "a"), param("Pool", "b")},
			"storageClass.parameters[pool]",
			[]string{"FLEX_POOL", "the class's parameter Pool"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			mustFault(t, faultsOf(source(test.changes...)), map[string][]string{test.path: test.words})
		})
	}
}

func TestAPIPropertiesAreReserved(t *testing.T) {
	for _, name := range slices.Concat(contract.APIProperties(), contract.EachProperties()) {
		t.Run(name, func(t *testing.T) {
			mustFault(t, faultsOf(source(param(name, "x"))), map[string][]string{
				"storageClass.parameters[" + name + "]": {contract.EnvName(name), "the reserved property " + name},
			})
			spelt := strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
			mustFault(t, faultsOf(source(param(spelt, "x"))), map[string][]string{
				"storageClass.parameters[" + spelt + "]": {"the reserved property " + name},
			})
			if faults := faultsOf(source(set(name, "x"))); len(faults) != 1 || faults[0].Field != "data["+name+"]" {
				t.Errorf("in the ConfigMap: %v, want one fault at data[%s]", faults, name)
			}
		})
	}
}

func TestPlainTextTokenIsAPropertyWithAWarning(t *testing.T) {
	if w := parse(t, source()).Warnings; len(w) != 0 {
		t.Errorf("warnings without a reason: %q", w)
	}
	cfg := parse(t, source(set("service-token", "s3cret")))
	if cfg.Properties["service-token"] != "s3cret" {
		t.Errorf("the token did not arrive: %v", cfg.Properties)
	}
	if len(cfg.Warnings) != 1 || !strings.Contains(cfg.Warnings[0], "env-from-secret") || strings.Contains(cfg.Warnings[0], "s3cret") {
		t.Errorf("warnings %q, want one that points to env-from-secret and does not repeat the token", cfg.Warnings)
	}
}

// A property of images that are older than the key namespaces is not refused for its name.
func TestThePropertyNamespaceIsAWarning(t *testing.T) {
	cfg := parse(t, source(set("namespace", "tenants")))
	if cfg.Properties["namespace"] != "tenants" {
		t.Errorf("the property did not arrive: %v", cfg.Properties)
	}
	if len(cfg.Warnings) != 1 || !strings.Contains(cfg.Warnings[0], "the key is namespaces") {
		t.Errorf("warnings %q", cfg.Warnings)
	}
	mustFault(t, faultsOf(source(set("Namespaces", "tenants"))), map[string][]string{"data[Namespaces]": {"did you mean namespaces?"}})
}

func TestEnvNamesCannotReachTheContainersOwnVariables(t *testing.T) {
	for property, want := range map[string]string{
		"path": "FLEX_PATH", "ld-preload": "FLEX_LD_PRELOAD", "fsType": "FLEX_FSTYPE", "a.b/c d": "FLEX_A_B_C_D",
		"10gbit": "FLEX_10GBIT", "größe": "FLEX_GR__E", "": "FLEX_",
	} {
		if got := contract.EnvName(property); got != want {
			t.Errorf("EnvName(%q) = %s, want %s", property, got, want)
		}
	}
}

// One of them too long, or all of them together: the Job would be created, and its container could
// never start.
func TestPropertiesTooLongForAPodAreAFault(t *testing.T) {
	const at = "data and the class's parameters"
	for name, s := range map[string]config.Source{
		"one key":          source(set("blob", strings.Repeat("x", 128<<10))),
		"key and param":    source(set("blob", strings.Repeat("x", 64<<10)), param("other", strings.Repeat("x", 64<<10))),
		"text that swells": source(set("blob", strings.Repeat("\n", 65<<10))),
	} {
		t.Run(name, func(t *testing.T) { mustFault(t, faultsOf(s), map[string][]string{at: {"Too long", "131072"}}) })
	}
	mustFault(t, faultsOf(source(set("blob", strings.Repeat("x", 127<<10)))), nil)
}
