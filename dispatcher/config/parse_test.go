package config_test

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

func TestConfigNeedsOnlyAnImageAndAServiceAccount(t *testing.T) {
	s := source()
	want := config.Config{
		Source: s, Image: "localhost/gold:v1", Verbs: []contract.Verb{contract.Provision}, ServiceAccount: "gold",
		RunOn: config.RunAnywhere, NodeGone: config.WaitForNode, Timeout: 10 * time.Minute, MaxAttempts: 0, MaxParallel: 20, BatchSize: 1, LaterBatch: 1,
		Properties: map[string]string{}, Writer: config.ContainerWrites,
	}
	if got := parse(t, s); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

const template = "spec:\n  tolerations: [{key: storage, operator: Exists}]\n"

func TestEveryKeyIsRead(t *testing.T) {
	checks := map[string]struct {
		value string
		ok    func(config.Config) bool
	}{
		"plugin-name":          {contract.OldPluginName, func(config.Config) bool { return true }},
		"image":                {" localhost/other:v2\n", func(c config.Config) bool { return c.Image == "localhost/other:v2" }},
		"script":               {text, func(c config.Config) bool { return c.Script == text }},
		"image-pull-policy":    {"Never", func(c config.Config) bool { return c.PullPolicy == corev1.PullNever }},
		"verbs":                {"provision, delete,expand,list", func(c config.Config) bool { return sameVerbs(c.Verbs, contract.Verbs()...) }},
		"service-account-name": {"writer", func(c config.Config) bool { return c.ServiceAccount == "writer" }},
		"node-selector": {"zone=west, storage=", func(c config.Config) bool {
			return maps.Equal(c.Scheduling.NodeSelector, map[string]string{"zone": "west", "storage": ""})
		}},
		"node-gone":         {"any-node", func(c config.Config) bool { return c.NodeGone == config.AnyNode }},
		"run-on":            {"selected-node", func(c config.Config) bool { return c.RunOn == config.RunOnSelected }},
		"env-from-secret":   {"login", func(c config.Config) bool { return c.EnvSecret == "login" }},
		"files-from-secret": {"cloud.d", func(c config.Config) bool { return c.FilesSecret == "cloud.d" }},
		"pod-template": {template, func(c config.Config) bool {
			return string(c.Template) == `{"spec":{"tolerations":[{"key":"storage","operator":"Exists"}]}}`
		}},
		"timeout":      {"90s", func(c config.Config) bool { return c.Timeout == 90*time.Second }},
		"max-attempts": {"3", func(c config.Config) bool { return c.MaxAttempts == 3 }},
		"data-sources": {"PersistentVolumeClaim", func(c config.Config) bool { return c.Clones }},
		"write-pv":     {"dispatcher", func(c config.Config) bool { return c.Writer == config.DispatcherWrites }},
		"batch-size":   {"64", func(c config.Config) bool { return c.BatchSize == 64 }},
		"request-keys": {"tier, example.com/Replicas,\nexample.com/backup", func(c config.Config) bool {
			return slices.Equal(c.RequestKeys, []string{"example.com/Replicas", "example.com/backup", "tier"})
		}},
		"volume-attributes-classes": {"true", func(c config.Config) bool { return c.AttributesClasses }},
		"classes":                   {"silver", func(c config.Config) bool { return len(c.Properties) == 0 }}, // TestAConfigListsTheClassesThatMayNameIt
		"namespaces":                {"team-a", func(c config.Config) bool { return len(c.Properties) == 0 }}, // TestAConfigAdmitsTheNamespacesThatItLists
		"keep-deleted":              {"168h", func(c config.Config) bool { return len(c.Properties) == 0 }},   // TestKeepDeletedIsADuration
		"keep-deleted-limit":        {"1Gi", func(c config.Config) bool { return len(c.Properties) == 0 }},    // TestKeepDeletedLimitIsAQuantityOfBytes
		"max-parallel":              {"1", func(c config.Config) bool { return c.MaxParallel == 1 }},
	}
	if got, want := slices.Sorted(maps.Keys(checks)), slices.Sorted(slices.Values(config.Keys())); !slices.Equal(got, want) {
		t.Fatalf("checked are the keys %v, read are %v", got, want)
	}
	for key, check := range checks {
		t.Run(key, func(t *testing.T) {
			cfg := parse(t, source(binding("WaitForFirstConsumer"), set(key, check.value)))
			if !check.ok(cfg) {
				t.Errorf("%s: %q was read as %+v", key, check.value, cfg)
			}
			if len(cfg.Properties) != 0 {
				t.Errorf("a key of ours became a property: %v", cfg.Properties)
			}
		})
	}
}

func TestFaultsNameTheKeyAndTheRemedy(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*config.Source)
		path   string
		words  []string
	}{
		"another plugin":              {set("plugin-name", "example.com/other"), "plugin-name", []string{"example.com/other", contract.ProvisionerName}},
		"no image":                    {set("image", ""), "image", []string{"Required"}},
		"blank image":                 {set("image", " \n"), "image", []string{"Required"}},
		"unknown pull policy":         {set("image-pull-policy", "Sometimes"), "image-pull-policy", []string{"Sometimes", "IfNotPresent"}},
		"unknown verb":                {set("verbs", "provision,snapshot"), "verbs", []string{"snapshot", "expand"}},
		"a comma too much":            {set("verbs", "provision,"), "verbs", []string{"Unsupported"}},
		"no provision":                {set("verbs", "list"), "verbs", []string{"must include provision"}},
		"no service account":          {set("service-account-name", ""), "service-account-name", []string{"Required", "creates the PersistentVolume"}},
		"node selector without value": {set("node-selector", "west"), "node-selector", []string{"label=value"}},
		"node selector bad label":     {set("node-selector", "a b=west"), "node-selector", []string{"a b"}},
		"node selector bad value":     {set("node-selector", "zone=we st"), "node-selector", []string{"we st"}},
		"node selector twice":         {set("node-selector", "zone=west,zone=east"), "node-selector", []string{"zone", "twice"}},
		"unknown run-on":              {set("run-on", "here"), "run-on", []string{"here", "selected-node"}},
		"unknown node-gone":           {set("node-gone", "panic"), "node-gone", []string{"panic", "any-node", "forget", "wait"}},
		"keep-deleted in days":        {set("keep-deleted", "7d"), "keep-deleted", []string{"7d", "168h"}},
		"keep-deleted-limit of none":  {set("keep-deleted-limit", "0"), "keep-deleted-limit", []string{"500Gi", "no limit"}},
		"nearly node-gone":            {set("nodes-gone", "wait"), "nodes-gone", []string{"did you mean node-gone"}},
		"selected node, Immediate":    {set("run-on", "selected-node"), "run-on", []string{"WaitForFirstConsumer", "gold"}},
		"env secret's name":           {set("env-from-secret", "Log_in"), "env-from-secret", []string{"Log_in", "lowercase"}},
		"files secret's name":         {set("files-from-secret", "a/b"), "files-from-secret", []string{"a/b"}},
		"template is no YAML":         {set("pod-template", "spec: ["), "pod-template", []string{"PodTemplateSpec"}},
		"template unknown field":      {set("pod-template", "spec: {tolerance: []}"), "pod-template", []string{"tolerance"}},
		"template field twice":        {set("pod-template", "spec: {}\nspec: {}"), "pod-template", []string{"spec"}},
		"template directive":          {set("pod-template", "spec:\n  containers:\n  - $patch: delete\n    name: provisioner"), "pod-template", []string{"$patch"}},
		"template restartPolicy":      {set("pod-template", "spec: {restartPolicy: OnFailure}"), "pod-template", []string{"restartPolicy"}},
		"template takes the verdict":  {set("pod-template", "spec:\n  containers:\n  - {name: provisioner, args: [other]}"), "pod-template", []string{"exit code is the verdict"}},
		"template hides the message":  {set("pod-template", "spec:\n  containers:\n  - {name: provisioner, terminationMessagePath: /x}"), "pod-template", []string{"exit code is the verdict"}},
		"template names a node":       {set("pod-template", "spec: {nodeName: node-1}"), "pod-template", []string{"nodeName", "node-selector"}},
		"template grace of a day":     {set("pod-template", "spec: {terminationGracePeriodSeconds: 86400}"), "pod-template", []string{"terminationGracePeriodSeconds"}},
		"helper restarts the verdict": {set("pod-template", "spec: {containers: [{name: helper, restartPolicy: Never, restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [42]}}]}]}"), "pod-template", []string{"helper", "RestartAllContainers"}},
		"template keeps others away":  {set("pod-template", "spec: {affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/os}]}}}"), "pod-template", []string{"podAntiAffinity", "topologySpreadConstraints"}},
		"template restarts it":        {set("pod-template", "spec:\n  containers:\n  - {name: provisioner, restartPolicy: Always}"), "pod-template", []string{"exit code is the verdict"}},
		"template sets our variable":  {set("pod-template", "spec:\n  containers:\n  - name: provisioner\n    env: [{name: FLEX_SIZE, value: \"1\"}]"), "pod-template", []string{"FLEX_SIZE", "reserved for the dispatcher"}},
		"template labels as we do":    {set("pod-template", "metadata: {labels: {flex-provisioner.io/claim-uid: x}}"), "pod-template", []string{"flex-provisioner.io/claim-uid", "reserved for the dispatcher"}},
		"template labels below ours":  {set("pod-template", "metadata: {labels: {claim.flex-provisioner.io/x: x}}"), "pod-template", []string{"reserved for the dispatcher"}},
		"timeout is no duration":      {set("timeout", "10"), "timeout", []string{"10m"}},
		"timeout too short":           {set("timeout", "999ms"), "timeout", []string{"at least one second"}},
		"attempts below 0":            {set("max-attempts", "-1"), "max-attempts", []string{"0 or more"}},
		"attempts in words":           {set("max-attempts", "three"), "max-attempts", []string{"whole number"}},
		"request key is no name":      {set("request-keys", "tier,a b"), "request-keys", []string{"a b", "labels or annotations"}},
		"request key: a comma":        {set("request-keys", "tier,"), "request-keys", []string{"must be non-empty"}},
		"request key: a pattern":      {set("request-keys", "example.com/*"), "request-keys", []string{"example.com/*"}},
		"request key twice":           {set("request-keys", "tier,tier"), "request-keys", []string{"tier", "twice"}},
		"request key of ours":         {set("request-keys", contract.AnnAttempts), "request-keys", []string{contract.AnnAttempts, "written by the dispatcher"}},
		"request key below ours":      {set("request-keys", "x."+contract.AnnAttempts), "request-keys", []string{"written by the dispatcher"}},
		"request key of Kubernetes":   {set("request-keys", "volume.kubernetes.io/selected-node"), "request-keys", []string{"Kubernetes' controllers"}},
		"attributes classes in words": {set("volume-attributes-classes", "csi"), "volume-attributes-classes", []string{"csi", "true"}},
		"template finalizers":         {set("pod-template", "metadata: {finalizers: [example.com/x]}"), "pod-template", []string{"example.com/x", "remove"}},
		"template preempts the node":  {set("pod-template", "spec: {priorityClassName: system-node-critical}"), "pod-template", []string{"system-node-critical", "priorityClassName"}},
		"template grace of an age":    {set("pod-template", "spec: {terminationGracePeriodSeconds: 9223372036854775807}"), "pod-template", []string{"terminationGracePeriodSeconds"}},
		"template grace of a probe":   {set("pod-template", "spec: {containers: [{name: a, livenessProbe: {terminationGracePeriodSeconds: 601}}]}"), "pod-template", []string{"terminationGracePeriodSeconds of a probe", "container a"}},
		"template grace, init":        {set("pod-template", "spec: {initContainers: [{name: a, startupProbe: {terminationGracePeriodSeconds: 601}}]}"), "pod-template", []string{"terminationGracePeriodSeconds of a probe", "container a"}},
		"template of windows":         {set("pod-template", "spec: {os: {name: windows}}"), "pod-template", []string{"windows", "os"}},
		"template debugs":             {set("pod-template", "spec: {ephemeralContainers: [{name: debug, image: x}]}"), "pod-template", []string{"ephemeralContainers"}},
		"template in other capitals":  {set("pod-template", "Spec: {hostNetwork: true}"), "pod-template", []string{"Spec"}},
		"template hides by capitals":  {set("pod-template", "spec: {Containers: [{name: x}], containers: [{name: b}]}"), "pod-template", []string{"Containers"}},
		"no Job at a time":            {set("max-parallel", "0"), "max-parallel", []string{"1 or more"}},
	} {
		t.Run(name, func(t *testing.T) {
			mustFault(t, faultsOf(source(test.change)), map[string][]string{"data[" + test.path + "]": test.words})
		})
	}
}

// A strategic merge takes away what a null stands for: with it went the container whose security
// was to be judged.
func TestTemplateWithANullIsRefusedByItsPath(t *testing.T) {
	for template, at := range map[string]string{
		"spec: null":               `"spec"`,
		"spec:":                    `"spec"`,
		"spec: {containers: null}": `"spec.containers"`,
		"spec: {securityContext: {runAsUser: 0, seccompProfile: ~}}":       `"spec.securityContext.seccompProfile"`,
		"spec: {containers: [{name: a, image: x}, null]}":                  `"spec.containers[1]"`,
		"spec: {containers: [{name: provisioner, securityContext: null}]}": `"spec.containers[0].securityContext"`,
		"metadata: {annotations: {example.com/a: null}}":                   `"metadata.annotations.example.com/a"`,
		"spec: {containers: [{name: provisioner, command: [a, null, b]}]}": `"spec.containers[0].command[1]"`,
		"spec: {nodeSelector: Null, securityContext: {runAsUser: 1000}}":   `"spec.nodeSelector"`,
	} {
		mustFault(t, faultsOf(source(set("pod-template", template))), map[string][]string{"data[pod-template]": {at, "may not be null"}})
	}
	if got := faultsOf(source(set("pod-template", "spec: {nodeSelector: null, affinity: null}"))); len(got) != 2 {
		t.Errorf("not all nulls are told: %v", got)
	}
	for _, template := range []string{"", "  \n", "# spec: {containers: null}\n", "null"} {
		if cfg := parse(t, source(set("pod-template", template))); cfg.Template != nil {
			t.Errorf("%q is a template: %q", template, cfg.Template)
		}
	}
}

func TestGracePeriodMayBeAsLongAsTheTimeoutAndThirtySeconds(t *testing.T) {
	for _, tt := range []struct {
		timeout, grace string
		ok             bool
	}{{"10s", "30", true}, {"10s", "31", false}, {"5m", "300", true}, {"5m", "301", false}} {
		got := faultsOf(source(set("timeout", tt.timeout), set("pod-template", "spec: {terminationGracePeriodSeconds: "+tt.grace+"}")))
		if (len(got) == 0) != tt.ok {
			t.Errorf("timeout %s, grace %s s: %v", tt.timeout, tt.grace, got)
		}
	}
}

func TestReclaimPolicyDeleteNeedsTheVerbDelete(t *testing.T) {
	at := map[string][]string{"data[verbs]": {"reclaimPolicy Delete", "gold", "Retain"}}
	mustFault(t, faultsOf(source(reclaim("Delete"))), at)
	mustFault(t, faultsOf(source(reclaim("Delete"), set("verbs", "provision,expand"))), at)
	mustFault(t, faultsOf(source(reclaim("Delete"), set("verbs", "provision,delete"))), nil)
	mustFault(t, faultsOf(source(reclaim("Retain"), set("verbs", "provision"))), nil)
}

func TestRunOnSelectedNodeNeedsWaitForFirstConsumer(t *testing.T) {
	mustFault(t, faultsOf(source(set("run-on", "selected-node"), binding("WaitForFirstConsumer"))), nil)
	mustFault(t, faultsOf(source(set("run-on", "any"), binding("Immediate"))), nil)
}

func TestBatchSizeHasBounds(t *testing.T) {
	for value, words := range map[string]string{
		"1": "", "2": "", "64": "", "65": "at most 64", "0": "a whole number, 1 or more", "many": "a whole number, 1 or more",
	} {
		var want map[string][]string
		if words != "" {
			want = map[string][]string{"data[batch-size]": {words}}
		}
		mustFault(t, faultsOf(source(set("batch-size", value))), want)
	}
	mustFault(t, faultsOf(source(set("batch-size", "2"), set("write-pv", "dispatcher"))),
		map[string][]string{"data[batch-size]": {"must be 1 with write-pv: dispatcher"}})
	mustFault(t, faultsOf(source(set("batch-size", "1"), set("write-pv", "dispatcher"))), nil)
}

func TestOwnAndOldPluginNamesAreAccepted(t *testing.T) {
	for _, name := range []string{"example.com/mine", contract.OldPluginName} {
		if _, faults := config.Parse(source(set("plugin-name", name)), config.Dispatcher{Provisioner: "example.com/mine"}); len(faults) > 0 {
			t.Errorf("plugin-name %s: %v", name, faults)
		}
	}
}

// broken returns a source with every fault that does not hide another.
func broken() config.Source {
	return source(
		reclaim("Delete"), set("plugin-name", "x"), set("image", ""), set("image-pull-policy", "x"), set("verbs", "list"),
		set("service-account-name", ""), set("node-selector", "x,a b=c d"), set("run-on", "selected-node"),
		set("node-gone", "x"), set("env-from-secret", "X"), set("files-from-secret", "X"),
		set("pod-template", "spec: {restartPolicy: Always}"), set("timeout", "x"), set("max-attempts", "x"), set("max-parallel", "x"),
		set("request-keys", "a b,,"+contract.AnnResult), set("nodeSelector", "zone=west"), set("size", "1"), param("Size", "1"))
}

func TestAllFaultsAreReportedAtOnce(t *testing.T) {
	var got []string
	for _, f := range faultsOf(broken()) {
		got = append(got, f.Field)
	}
	want := []string{
		"data[nodeSelector]", "data[size]", "storageClass.parameters[Size]", "data[plugin-name]", "data[image]", "data[image-pull-policy]", "data[verbs]", "data[verbs]", "data[service-account-name]",
		"data[node-selector]", "data[node-selector]", "data[node-selector]", "data[run-on]", "data[node-gone]", "data[env-from-secret]",
		"data[files-from-secret]", "data[timeout]", "data[max-attempts]", "data[max-parallel]", "data[pod-template]",
		"data[request-keys]", "data[request-keys]", "data[request-keys]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// An event with the same faults in another order would be a new event.
func TestFaultsHaveAStableOrder(t *testing.T) {
	text := func() string {
		var out strings.Builder
		for _, f := range faultsOf(broken()) {
			out.WriteString(f.Error() + "\n")
		}
		return out.String()
	}
	first := text()
	for range 50 {
		if again := text(); again != first {
			t.Fatalf("first\n%s\nthen\n%s", first, again)
		}
	}
}

func TestExampleOfTheOriginalDesignHasNoFaults(t *testing.T) {
	cm := configMap("custom-isci-provisioner",
		map[string]string{"storage-class": "silver", "type": "provisioner-config"},
		map[string]string{
			"plugin-name": "kubernetes.io/flex-provisioner", "image": "localhost/custom-iscsi-provision:v1",
			"service-account-name": "foo", "service-token": "23092390532lksf90kwelklfw",
			"use-nfs-server": "10.10.2.4", "zone": "west",
		})
	cfg := parse(t, config.SourceOf(cm, class("silver", corev1.PersistentVolumeReclaimRetain)))
	want := map[string]string{"service-token": "23092390532lksf90kwelklfw", "use-nfs-server": "10.10.2.4", "zone": "west"}
	if !maps.Equal(cfg.Properties, want) {
		t.Errorf("properties %v, want %v", cfg.Properties, want)
	}
	if cfg.Image != "localhost/custom-iscsi-provision:v1" || cfg.ServiceAccount != "foo" {
		t.Errorf("image %q, service account %q", cfg.Image, cfg.ServiceAccount)
	}
	if len(cfg.Warnings) != 1 || !strings.Contains(cfg.Warnings[0], "env-from-secret") {
		t.Errorf("warnings %q, want one that points to env-from-secret", cfg.Warnings)
	}
}

// Only the key service-account-name sets the ServiceAccount, and a container that writes no PV gets
// no token at all.
func TestPodTemplateMayNotTakeATokenOrAServiceAccount(t *testing.T) {
	projected := "spec: {volumes: [{name: t, projected: {sources: [{serviceAccountToken: {path: t}}]}}]}"
	tests := map[string]struct{ template, writer, words string }{
		"an account":              {"spec: {serviceAccountName: flex-dispatcher}", "container", "may not name a ServiceAccount"},
		"an account, old":         {"spec: {serviceAccount: flex-dispatcher}", "container", "may not name a ServiceAccount"},
		"the token is mounted":    {"spec: {automountServiceAccountToken: true}", "dispatcher", "gets no token"},
		"a token is projected":    {projected, "dispatcher", "gets no token"},
		"a token, for a PV of it": {projected, "container", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, faults := config.Parse(source(set("pod-template", tt.template), set("write-pv", tt.writer)), config.Dispatcher{Provisioner: contract.ProvisionerName})
			if tt.words == "" && len(faults) > 0 || tt.words != "" && (len(faults) == 0 || !strings.Contains(faults[0].Error(), tt.words)) {
				t.Errorf("faults %v, want %q", faults, tt.words)
			}
		})
	}
}
