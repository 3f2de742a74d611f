package jobs_test

import (
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

func allow(t *testing.T, flags ...string) jobs.Allowances {
	t.Helper()
	a := jobs.Allowances{}
	for _, text := range flags {
		if err := a.Add(text); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

// container returns a pod-template with these lines for the container provisioner.
func container(lines string) string {
	return "spec:\n  containers:\n  - name: provisioner\n    " + lines
}

func hostPath(path string) string {
	return container("volumeMounts: [{name: d, mountPath: /d}]") + "\n  volumes: [{name: d, hostPath: {path: " + path + "}}]"
}

const (
	asRoot          = "spec: {securityContext: {runAsNonRoot: false, runAsUser: 0}}"
	containerAsRoot = "securityContext: {runAsNonRoot: false, runAsUser: 0}"
	overrides       = "securityContext: {capabilities: {drop: [ALL], add: [DAC_OVERRIDE]}}"
)

func TestPodWithoutAnAllowanceIsRestricted(t *testing.T) {
	for name, test := range map[string]struct{ template, word, flags string }{
		"hostPath":              {hostPath("/srv/flex"), "hostPath", "--allow=flex-provisioner/host-path=/srv/flex"},
		"root":                  {asRoot, "runAsNonRoot", "--allow=flex-provisioner/run-as-user=0"},
		"container as root":     {container(containerAsRoot), "runAsNonRoot", "--allow=flex-provisioner/run-as-user=0"},
		"capability":            {container(overrides), "DAC_OVERRIDE", "--allow=flex-provisioner/capability=DAC_OVERRIDE"},
		"capabilities kept":     {container("securityContext: {capabilities: {drop: []}}"), "capabilities.drop", ""},
		"privileged":            {container("securityContext: {privileged: true}"), "privileged", ""},
		"escalation":            {container("securityContext: {allowPrivilegeEscalation: true}"), "allowPrivilegeEscalation", ""},
		"host network":          {"spec: {hostNetwork: true}", "host namespaces", "--allow=flex-provisioner/host-network=true"},
		"host PIDs":             {"spec: {hostPID: true}", "host namespaces", ""},
		"host port":             {container("ports: [{containerPort: 80, hostPort: 80}]"), "hostPort", ""},
		"seccomp off":           {"spec: {securityContext: {seccompProfile: {type: Unconfined}}}", "seccompProfile", ""},
		"AppArmor off":          {container("securityContext: {appArmorProfile: {type: Unconfined}}"), "AppArmor", ""},
		"AppArmor off, old":     {"metadata: {annotations: {container.apparmor.security.beta.kubernetes.io/provisioner: unconfined}}", "AppArmor", ""},
		"sysctl":                {"spec: {securityContext: {sysctls: [{name: kernel.msgmax, value: \"1\"}]}}", "sysctl", ""},
		"raw /proc":             {container("securityContext: {procMount: Unmasked}"), "procMount", ""},
		"bare second container": {"spec: {containers: [{name: notify, image: x}]}", "notify", ""},
		"bare init container":   {"spec: {initContainers: [{name: copy, image: x}]}", "copy", ""},
		"root, own user IDs":    {"spec: {hostUsers: false, securityContext: {runAsNonRoot: false, runAsUser: 0}}", "runAsNonRoot", "--allow=flex-provisioner/run-as-user=0"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := fixture.Config(t, "Delete", map[string]string{"pod-template": test.template})
			faults := jobs.Check(cfg, nil)
			if len(faults) != 1 {
				t.Fatalf("%d faults, want 1: %v", len(faults), faults)
			}
			text := faults[0].Error()
			for _, word := range []string{test.word, "data[pod-template]", test.flags} {
				if !strings.Contains(text, word) {
					t.Errorf("%q lacks %q", text, word)
				}
			}
			if test.flags == "" && strings.Contains(text, "--allow=") {
				t.Errorf("%q names a flag that would not help", text)
			}
		})
	}
}

func TestTemplateMayNotChangeThePartsOfTheContract(t *testing.T) {
	for name, test := range map[string]struct{ template, part string }{
		"a volume of two kinds":     {"spec: {volumes: [{name: flex, emptyDir: {}}]}", "the volume flex"},
		"the files' mode":           {"spec: {volumes: [{name: flex, downwardAPI: {defaultMode: 0}}]}", "the volume flex"},
		"other Secret's keys":       {"spec: {volumes: [{name: flex-secret, secret: {items: [{key: a, path: b}]}}]}", "the volume flex-secret"},
		"scratch of two kinds":      {"spec: {volumes: [{name: tmp, configMap: {name: x}}]}", "the volume tmp"},
		"scratch in memory":         {"spec: {volumes: [{name: tmp, emptyDir: {medium: Memory}}]}", ""},
		"a part of the files":       {container("volumeMounts: [{name: flex, mountPath: " + contract.Dir + ", subPath: x}]"), "the mount " + contract.Dir},
		"HOME from elsewhere":       {container("env: [{name: HOME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]"), "the variable HOME"},
		"a variable of its own":     {container("env: [{name: LANG, value: C}]"), ""},
		"files of its own below it": {container("volumeMounts: [{name: tmp, mountPath: /tmp/x, subPath: x}]"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := fixture.Config(t, "Delete", map[string]string{"pod-template": test.template, "files-from-secret": "login"})
			faults := jobs.Check(cfg, nil)
			if test.part == "" && len(faults) == 0 {
				return
			}
			if len(faults) != 1 || test.part == "" || !strings.Contains(faults[0].Error(), test.part+" is reserved for the dispatcher") {
				t.Errorf("faults %v, want one of %q", faults, test.part)
			}
		})
	}
}

func TestBaselineAndStricterPodsNeedNoAllowance(t *testing.T) {
	for name, template := range map[string]string{
		"none":          "",
		"another user":  "spec: {securityContext: {runAsUser: 1000, runAsGroup: 1000}}",
		"no token":      "spec: {automountServiceAccountToken: false}",
		"own network":   "spec: {hostUsers: false}",
		"bind to 80":    container("securityContext: {capabilities: {drop: [ALL], add: [NET_BIND_SERVICE]}}"),
		"writable root": container("securityContext: {readOnlyRootFilesystem: false}"),
		"a volume":      container("volumeMounts: [{name: c, mountPath: /c}]") + "\n  volumes: [{name: c, persistentVolumeClaim: {claimName: c}}]",
	} {
		if faults := jobs.Check(fixture.Config(t, "Delete", map[string]string{"pod-template": template}), nil); len(faults) > 0 {
			t.Errorf("%s: %v", name, faults.ToAggregate())
		}
	}
}

func TestEachKindOfAllowanceAllowsOnlyThat(t *testing.T) {
	const hp, root, dac = "flex-provisioner/host-path=/srv/flex", "flex-provisioner/run-as-user=0", "flex-provisioner/capability=DAC_OVERRIDE"
	for name, test := range map[string]struct {
		template string
		flags    []string
		want     bool
	}{
		"host path":                        {hostPath("/srv/flex"), []string{hp}, true},
		"host path below":                  {hostPath("/srv/flex/gold/a"), []string{hp}, false},
		"host path below, by subPath":      {belowBySubPath, []string{hp}, true},
		"host path below, listed itself":   {hostPath("/srv/flex/gold"), []string{hp, hp + "/gold"}, true},
		"host path, other namespace":       {hostPath("/srv/flex"), []string{"other/host-path=/srv/flex"}, false},
		"host path, other kinds":           {hostPath("/srv/flex"), []string{root, dac}, false},
		"host path above":                  {hostPath("/srv"), []string{hp}, false},
		"host path beside":                 {hostPath("/srv/flex-other"), []string{hp}, false},
		"host path, dots":                  {hostPath("/srv/flex/../other"), []string{hp}, false},
		"host path, dots that stay":        {hostPath("/srv/flex/a/.."), []string{hp}, false},
		"host path, slashes":               {hostPath("/srv//flex"), []string{hp}, false},
		"host path, slash at the end":      {hostPath("/srv/flex/"), []string{hp}, false},
		"host path, root of all":           {hostPath("/"), []string{hp}, false},
		"host path, second one":            {hostPath("/data"), []string{hp, "flex-provisioner/host-path=/data"}, true},
		"one allowed volume hides none":    {twoPaths, []string{hp}, false},
		"user of the pod":                  {asRoot, []string{root}, true},
		"user of the container":            {container(containerAsRoot), []string{root}, true},
		"another user's allowance":         {asRoot, []string{"flex-provisioner/run-as-user=1"}, false},
		"non-root off without a user":      {container("securityContext: {runAsNonRoot: false}"), []string{root}, false},
		"user, not the other kinds":        {asRoot, []string{hp, dac}, false},
		"root may not be privileged":       {container("securityContext: {runAsUser: 0, privileged: true}"), []string{root}, false},
		"host network":                     {"spec: {hostNetwork: true}", []string{"flex-provisioner/host-network=true"}, true},
		"host network, not named":          {"spec: {hostNetwork: true}", []string{hp, root, dac}, false},
		"host network, other namespace":    {"spec: {hostNetwork: true}", []string{"other/host-network=true"}, false},
		"host network, and more":           {"spec: {hostNetwork: true, hostPID: true}", []string{"flex-provisioner/host-network=true"}, false},
		"capability":                       {container(overrides), []string{dac}, true},
		"capability, other":                {container(overrides), []string{"flex-provisioner/capability=CHOWN"}, false},
		"capability, others kept":          {container("securityContext: {capabilities: {add: [DAC_OVERRIDE], drop: []}}"), []string{dac}, false},
		"capability, all":                  {container("securityContext: {capabilities: {drop: [ALL], add: [ALL]}}"), []string{dac}, false},
		"capability of an init container":  {"spec:\n  initContainers:\n  - {name: i, image: x, " + overrides + "}", []string{dac}, false},
		"init container, allowed in full":  {"spec:\n  initContainers:\n  - name: i\n    image: x\n    securityContext: {runAsUser: 0, allowPrivilegeEscalation: false, capabilities: {drop: [ALL], add: [DAC_OVERRIDE]}}", []string{dac, root}, true},
		"all of them for the node's paths": {nodeDirectories, []string{hp, root, dac}, true},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := fixture.Config(t, "Delete", map[string]string{"pod-template": test.template})
			faults := jobs.Check(cfg, allow(t, test.flags...))
			if got := len(faults) == 0; got != test.want {
				t.Errorf("allowed %v, want %v: %v", got, test.want, faults)
			}
		})
	}
}

const nodeDirectories = `
spec:
  securityContext: {runAsNonRoot: false, runAsUser: 0, runAsGroup: 0}
  containers:
  - name: provisioner
    securityContext: {capabilities: {drop: [ALL], add: [DAC_OVERRIDE]}}
    volumeMounts: [{name: volumes, mountPath: /volumes}]
  volumes: [{name: volumes, hostPath: {path: /srv/flex, type: DirectoryOrCreate}}]
`

// belowBySubPath mounts a directory below the one that is listed as the kubelet resolves it:
// without leaving the volume.
const belowBySubPath = `
spec:
  containers:
  - name: provisioner
    volumeMounts: [{name: d, mountPath: /d, subPath: gold/a}]
  volumes: [{name: d, hostPath: {path: /srv/flex}}]
`

// twoPaths has an allowed one first.
const twoPaths = `
spec:
  volumes:
  - {name: d, hostPath: {path: /srv/flex}}
  - {name: e, hostPath: {path: /etc}}
`

// The fault says what to mount instead.
func TestAHostPathBelowAnAllowedOneIsRefusedWithTheRemedy(t *testing.T) {
	cfg := fixture.Config(t, "Delete", map[string]string{"pod-template": hostPath("/srv/flex/gold")})
	faults := jobs.Check(cfg, allow(t, "flex-provisioner/host-path=/srv/flex")).ToAggregate()
	for _, words := range []string{"data[pod-template]", "the hostPath /srv/flex/gold of the volume d is below /srv/flex", "symbolic links", "mount /srv/flex", "subPathExpr"} {
		if faults == nil || !strings.Contains(faults.Error(), words) {
			t.Errorf("%q is not in: %v", words, faults)
		}
	}
}

// Check judges a copy: the Job keeps its hostPath and its user.
func TestCheckDoesNotChangeTheConfig(t *testing.T) {
	cfg := fixture.Config(t, "Delete", map[string]string{"pod-template": nodeDirectories})
	all := allow(t, "flex-provisioner/host-path=/srv/flex", "flex-provisioner/run-as-user=0", "flex-provisioner/capability=DAC_OVERRIDE")
	if faults := jobs.Check(cfg, all); len(faults) > 0 {
		t.Fatal(faults.ToAggregate())
	}
	spec := fixture.Build(t, fixture.Provision(cfg, fixture.Claim())).Spec.Template.Spec
	found := false
	for _, v := range spec.Volumes {
		found = found || v.HostPath != nil && v.HostPath.Path == "/srv/flex"
	}
	if !found || *spec.SecurityContext.RunAsUser != 0 || *spec.SecurityContext.RunAsNonRoot {
		t.Errorf("the Job lost what was allowed: %+v", spec)
	}
}

func TestFlagAllowIsParsedStrictly(t *testing.T) {
	for text, word := range map[string]string{
		"":                              "NAMESPACE/KIND=VALUE",
		"host-path=/srv":                "KIND",
		"/host-path=/srv":               "NAMESPACE/KIND=VALUE",
		"ns/host-path":                  "NAMESPACE/KIND=VALUE",
		"ns/host-path=":                 "NAMESPACE/KIND=VALUE",
		"ns/host-path=/":                "below /",
		"ns/host-network=yes":           "only be true",
		"ns/host-path=srv":              "absolute",
		"ns/host-path=/srv/":            "clean",
		"ns/host-path=/srv/../etc":      "clean",
		"ns/run-as-user=root":           "numeric",
		"ns/host-pid=true":              "the kind must be",
		"ns/Host-Path=/srv":             "the kind must be",
		"ns/service-account=dispatcher": "the kind must be",
	} {
		a := jobs.Allowances{}
		err := a.Add(text)
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("--allow %q: error %v, want one with %q", text, err, word)
		}
		if len(a) != 0 {
			t.Errorf("--allow %q left %v behind", text, a)
		}
	}
}
