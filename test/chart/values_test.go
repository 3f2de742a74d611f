package chart

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A value that is misspelled, or that the policies would not follow, ends the command with its name.
func TestWrongValuesAreRefused(t *testing.T) {
	const args = "RBAC or the policies of the chart would not follow this flag"
	for values, want := range map[string]string{
		"registrys: x":                                   "additional properties 'registrys' not allowed",
		"image: {tga: x}":                                "additional properties 'tga' not allowed",
		"image: {digest: latest}":                        "does not match pattern",
		"image: {repository: x}":                         "additional properties 'repository' not allowed",
		"monitoring: {enabled: true}":                    "additional properties 'enabled' not allowed",
		"audit: {storage: gold}":                         "additional properties 'storage' not allowed",
		"policies: {enabled: false}":                     "additional properties 'policies' not allowed",
		"replicas: two":                                  "got string, want integer",
		"resources: {limits: {memory: 2}}":               "got number, want string",
		"extraArgs: [--namespace=team-a]":                args,
		"extraArgs: [--config-namespaces]":               args,
		"extraArgs: [--trust-username]":                  args,
		"extraArgs: [--provisioner-name, x.example.org]": "does not match pattern",
		"configNamespaces: {flex-system: {}}":            "'not' failed",
		"configNamespaces: {\"a'] + ['b\": {}}":          "does not match pattern",
		"configNamespaces: {team-a: {creat: false}}":     "additional properties 'creat' not allowed",
		"nodeDirectories: {btrfs: true}":                 "value must be true",
		"podLabels: {\"a'] + ['b\": x}":                  "does not match pattern",
		"podLabels: {a: \"x'] + ['y\"}":                  "does not match pattern",
		"networkPolicies: {enabled: true}":               "minItems: got 0, want 1",
		"classes: {gold: {config: {verbs: provision}}}":  "missing property 'image'",
		"classes: {gold: {confg: {image: x}}}":           "additional properties 'confg' not allowed",
		"classes: {gold: {reclaimPolicy: Recycle}}":      "value must be one of 'Delete', 'Retain'",
		"classes: {gold: {parameters: {flex-provisioner.io/config-namespace: team-a}}}":                "no config namespace: add it to configNamespaces",
		"classes: {gold: {parameters: {flex-provisioner.io/config-namespace: flex-provisioner-node}}}": "set nodeDirectories.enabled",
	} {
		if _, err := renderIn(t, namespace, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", values, err, want)
		}
	}
}

// The kinds of the Prometheus Operator do not exist on most clusters, and a release with one of them
// would be refused as a whole.
func TestObjectsOfThePrometheusOperatorAreOnlyThereIfTheyHaveLabels(t *testing.T) {
	for values, want := range map[string]int{"{}": 0, everything: 0, "monitoring: {labels: {}}": 0, "monitoring: {labels: {release: x}}": 2} {
		found := 0
		for name, o := range decode(t, render(t, values)) {
			if !strings.HasPrefix(fmt.Sprint(o["apiVersion"]), "monitoring.coreos.com/") {
				continue
			}
			found++
			if labels := o["metadata"].(object)["labels"].(object); labels["release"] != "x" || labels["app.kubernetes.io/name"] != "flex-dispatcher" {
				t.Errorf("%s has the labels %v", name, labels)
			}
		}
		if found != want {
			t.Errorf("%s: %d objects of the Prometheus Operator, want %d", values, found, want)
		}
	}
}

func TestReleaseElsewhereIsRefused(t *testing.T) {
	if _, err := renderIn(t, "default", "{}"); err == nil || !strings.Contains(err.Error(), "install with --namespace flex-system: whoever can create pods") {
		t.Errorf("got %v", err)
	}
}

// The class of the README, as values, is what its files are.
// By a label that other-pods-policy.yaml does not know, a pod of a tenant kept the dispatcher from all
// nodes.
func TestNoPodKeepsTheDispatcherAwayByALabelOfTheValues(t *testing.T) {
	const policy = "ValidatingAdmissionPolicy flex-provisioner-other-pods"
	before := decode(t, render(t, "{}"))[policy]
	after := decode(t, render(t, "podLabels: {team: storage, app.kubernetes.io/part-of: x}"))[policy]
	known := strings.NewReplacer("'network-access', 'app.kubernetes.io/part-of', 'team']", "'network-access']", "'loop-attacher', 'x', 'storage']", "'loop-attacher']")
	if cmp.Equal(before, after) || !cmp.Equal(before, replaced(after, known)) {
		t.Errorf("the policy has changed: %s", cmp.Diff(before, after))
	}
}

// Helm labels no namespace that exists already, and without a level the API server refuses its pods.
func TestANamespaceThatExistsIsToBeLabelled(t *testing.T) {
	files, err := filesOf(t, namespace, "configNamespaces: {team-a: {}, team-b: {create: false}, team-c: {create: true}}")
	if err != nil {
		t.Fatal(err)
	}
	const command = "\n  kubectl label namespace %s pod-security.kubernetes.io/enforce=restricted\n"
	notes := files["flex-provisioner/templates/NOTES.txt"]
	for name, want := range map[string]bool{"team-a": false, "team-b": true, "team-c": false} {
		if strings.Contains(notes, fmt.Sprintf(command, name)) != want {
			t.Errorf("it is not %t that %s is to be labelled:\n%s", want, name, notes)
		}
	}
}

func TestAClassAndItsConfigAreThoseOfTheFiles(t *testing.T) {
	got := decode(t, render(t, `
classes:
  cinder-iscsi:
    reclaimPolicy: Delete
    allowVolumeExpansion: true
    volumeBindingMode: Immediate
    parameters: {type: lvm, fsType: ext4}
    config:
      image: localhost/cinder-provisioner:dev
      verbs: provision,delete,expand,list
      service-account-name: cinder-provisioner
      node-selector: node-restriction.kubernetes.io/flex-storage-network=true
      files-from-secret: cinder
      batch-size: 32
`))
	want := decode(t, file(t, "configmaps/cinder-iscsi.yaml"))
	if len(want) != 2 {
		t.Errorf("the files have %v", slices.Sorted(maps.Keys(want)))
	}
	for name, o := range want {
		if diff := cmp.Diff(o, got[name]); diff != "" {
			t.Errorf("the file has (-), the chart (+):\n%s", diff)
		}
	}
}

// A batch writes the PersistentVolumes of several claims, which the policies allow only to an account
// with this permission. A class without a batch must not have it.
func TestABatchGetsItsPermission(t *testing.T) {
	got := decode(t, render(t, `
configNamespaces: {team-a: {}}
classes:
  alone: {config: {image: x, service-account-name: account}}
  one: {config: {image: x, service-account-name: account, batch-size: "1"}}
  described: {config: {image: x, write-pv: dispatcher}}
  shared: {parameters: {flex-provisioner.io/config: one}}
  many: {parameters: {flex-provisioner.io/config-namespace: team-a}, config: {image: x, service-account-name: account, batch-size: "8"}}
`))
	var roles []string
	for name := range got {
		if strings.Contains(name, "flex-batch-") {
			roles = append(roles, name)
		}
	}
	slices.Sort(roles)
	if want := []string{"ClusterRole flex-batch-many", "ClusterRoleBinding flex-batch-many"}; !slices.Equal(roles, want) {
		t.Fatalf("there are %q, want %q", roles, want)
	}
	rule := object{"apiGroups": []any{"flex-provisioner.io"}, "resources": []any{"classes"}, "resourceNames": []any{"many"}, "verbs": []any{"batch"}}
	if diff := cmp.Diff([]any{rule}, got[roles[0]]["rules"]); diff != "" {
		t.Error(diff)
	}
	subject := object{"kind": "ServiceAccount", "name": "account", "namespace": "team-a"}
	if diff := cmp.Diff([]any{subject}, got[roles[1]]["subjects"]); diff != "" {
		t.Error(diff)
	}
	if got["ConfigMap team-a/many"] == nil || got["ConfigMap flex-provisioner/shared"] != nil {
		t.Error("the ConfigMap of many is not in its namespace, or shared has one of its own")
	}
}

// YAML has numbers and booleans where a ConfigMap and a class have texts.
func TestNumbersOfAClassAreWrittenAsPeopleDo(t *testing.T) {
	got := decode(t, render(t, `
classes:
  gold:
    default: true
    parameters: {size: 10737418240, thin: true}
    config: {image: x, max-parallel: 3, limit: 1000000, quiet: false, pod-template: "spec:\n  tolerations: []\n"}
`))
	class, config := got["StorageClass gold"], got["ConfigMap flex-provisioner/gold"]
	if diff := cmp.Diff(object{"size": "10737418240", "thin": "true"}, class["parameters"]); diff != "" {
		t.Error(diff)
	}
	data := object{"image": "x", "max-parallel": "3", "limit": "1000000", "quiet": "false", "pod-template": "spec:\n  tolerations: []\n"}
	if diff := cmp.Diff(data, config["data"]); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(fmt.Sprint(class["metadata"]), "storageclass.kubernetes.io/is-default-class:true") {
		t.Errorf("it is not the default class: %v", class["metadata"])
	}
}

// What is set is added to what the base has, or replaces a list of it.
func TestTheDeploymentHasTheValues(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	got := decode(t, render(t, `
registry: registry.example.org:5000/flex
image: {tag: v9, digest: "`+digest+`"}
imagePullSecrets: [{name: pull}]
replicas: 3
resources: {requests: {cpu: 1}, limits: {memory: 3Gi}}
nodeSelector: {zone: a}
tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists}]
affinity: {nodeAffinity: {}}
topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]
priorityClassName: system-cluster-critical
podAnnotations: {a: b}
podLabels: {team: storage, app.kubernetes.io/name: other}
extraArgs: [--v=2]
configNamespaces: {team-b: {}, team-a: {}}
nodeDirectories: {enabled: true}
`))["Deployment flex-system/flex-dispatcher"]["spec"].(object)
	template := got["template"].(object)
	pod := template["spec"].(object)
	container := pod["containers"].([]any)[0].(object)
	for what, c := range map[string][2]any{
		"image":        {container["image"], "registry.example.org:5000/flex/flex-dispatcher@" + digest},
		"replicas":     {got["replicas"], float64(3)},
		"requests":     {container["resources"].(object)["requests"], object{"cpu": float64(1), "memory": "64Mi"}},
		"limits":       {container["resources"].(object)["limits"], object{"memory": "3Gi"}},
		"GOMEMLIMIT":   {container["env"].([]any)[0].(object)["value"], "2764MiB"},
		"nodeSelector": {pod["nodeSelector"], object{"kubernetes.io/os": "linux", "zone": "a"}},
		"affinity":     {pod["affinity"], object{"nodeAffinity": object{}}},
		"priority":     {pod["priorityClassName"], "system-cluster-critical"},
		"pull secrets": {pod["imagePullSecrets"], []any{object{"name": "pull"}}},
		"annotations":  {template["metadata"].(object)["annotations"], object{"a": "b"}},
		"labels":       {template["metadata"].(object)["labels"], object{"app.kubernetes.io/name": "flex-dispatcher", "team": "storage"}},
		"spread":       {pod["topologySpreadConstraints"].([]any)[0].(object)["topologyKey"], "zone"},
		"tolerations":  {pod["tolerations"].([]any)[0].(object)["operator"], "Exists"},
	} {
		if diff := cmp.Diff(c[1], c[0]); diff != "" {
			t.Errorf("%s: %s", what, diff)
		}
	}
	args := fmt.Sprint(container["args"])
	if !strings.HasPrefix(args, "[--script-image=registry.example.org:5000/flex/flex-shell:dev --config-namespaces=flex-provisioner-node --allow=") || !strings.HasSuffix(args, " --config-namespaces=team-a,team-b --v=2]") {
		t.Errorf("the arguments are %s", args)
	}
}
