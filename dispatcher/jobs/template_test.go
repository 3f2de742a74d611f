package jobs_test

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// fullTemplate has something at every level, and is accepted with fullFlags.
const fullTemplate = `
metadata:
  labels: {kueue.x-k8s.io/queue-name: storage}
  annotations: {example.com/team: blue}
spec:
  priorityClassName: storage
  terminationGracePeriodSeconds: 20
  hostNetwork: false
  enableServiceLinks: false
  nodeSelector: {disk: fast}
  tolerations: [{key: storage, operator: Exists}]
  imagePullSecrets: [{name: pull}]
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms: [{matchExpressions: [{key: rack, operator: In, values: ["1"]}]}]
  securityContext: {runAsNonRoot: false, runAsUser: 0, runAsGroup: 0, fsGroup: 0, seccompProfile: {type: RuntimeDefault}}
  initContainers:
  - name: prepare
    image: localhost/prepare:v1
    command: [prepare]
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
  containers:
  - name: provisioner
    command: [/bin/provision]
    env: [{name: LANG, value: C}]
    resources: {requests: {cpu: 20m}, limits: {memory: 64Mi}}
    securityContext: {readOnlyRootFilesystem: false, capabilities: {drop: [ALL], add: [DAC_OVERRIDE]}}
    volumeMounts: [{name: volumes, mountPath: /volumes}]
  - name: notify
    image: localhost/notify:v1
    securityContext: {allowPrivilegeEscalation: false, runAsUser: 1000, capabilities: {drop: [ALL]}}
  volumes:
  - {name: volumes, hostPath: {path: /srv/flex, type: DirectoryOrCreate}}
  - {name: tmp, emptyDir: {medium: Memory}}
`

var fullFlags = []string{
	"flex-provisioner/host-path=/srv/flex", "flex-provisioner/run-as-user=0", "flex-provisioner/capability=DAC_OVERRIDE",
}

// tree is a template as YAML decodes it. It returns a new one each time, since tests change it.
func tree(t *testing.T) map[string]any {
	t.Helper()
	var out map[string]any
	if err := yaml.Unmarshal([]byte(fullTemplate), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// place is where a value stands in a template, and how to replace or remove it.
type place struct {
	path   string
	value  any
	set    func(any)
	remove func()
}

// places returns every place in a template.
func places(value any, path string) []place {
	var out []place
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			at := strings.TrimPrefix(path+"."+key, ".")
			out = append(out, place{at, v[key], func(to any) { v[key] = to }, func() { delete(v, key) }})
			out = append(out, places(v[key], at)...)
		}
	case []any:
		for i, item := range v {
			at := path + "[" + strconv.Itoa(i) + "]"
			out = append(out, place{at, item, func(to any) { v[i] = to }, func() { v[i] = map[string]any{} }})
			out = append(out, places(item, at)...)
		}
	}
	return out
}

// judge returns the config with a template, and why it is refused.
func judge(t *testing.T, template any, allowed jobs.Allowances) (config.Config, field.ErrorList) {
	t.Helper()
	text, err := yaml.Marshal(template)
	if err != nil {
		t.Fatal(err)
	}
	src := bare(t).Source
	src.Data["pod-template"] = string(text)
	cfg, faults := config.Parse(src, config.Dispatcher{Provisioner: contract.ProvisionerName})
	if len(faults) == 0 {
		faults = jobs.Check(cfg, allowed)
	}
	return cfg, faults
}

// bare returns the config without a template.
func bare(t *testing.T) config.Config {
	t.Helper()
	return fixture.Config(t, "Delete", map[string]string{"files-from-secret": "login", "env-from-secret": "login"})
}

// mustHold checks what holds of the Jobs of every config that is accepted.
func mustHold(t *testing.T, cfg config.Config, allowed bool) {
	t.Helper()
	plan := fixture.Provision(cfg, fixture.Claim())
	job, err := jobs.Build(plan)
	if err != nil {
		t.Error(err)
		return
	}
	plan.Config.Template = nil
	mustHaveTheContract(t, job.Spec.Template, fixture.Build(t, plan))
	pod := job.Spec.Template.DeepCopy()
	if allowed {
		withoutAllowed(&pod.Spec)
	}
	for _, result := range evaluator().EvaluatePod(api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &pod.ObjectMeta, &pod.Spec) {
		if !result.Allowed {
			t.Errorf("the pod is not restricted: %s", result.ForbiddenDetail)
		}
	}
}

var evaluator = sync.OnceValue(func() policy.Evaluator {
	e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		panic(err)
	}
	return e
})

// withoutAllowed takes out of a pod what fullFlags allow.
func withoutAllowed(spec *corev1.PodSpec) {
	for i, v := range spec.Volumes {
		if v.HostPath != nil && v.HostPath.Path == "/srv/flex" {
			spec.Volumes[i].VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
		}
	}
	if s := spec.SecurityContext; s != nil && s.RunAsUser != nil && *s.RunAsUser == 0 {
		s.RunAsUser, s.RunAsNonRoot = new(int64(1000)), new(true)
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		s := c.SecurityContext
		if s != nil && s.RunAsUser != nil && *s.RunAsUser == 0 {
			s.RunAsUser, s.RunAsNonRoot = new(int64(1000)), new(true)
		}
		if s != nil && s.Capabilities != nil {
			s.Capabilities.Add = slices.DeleteFunc(s.Capabilities.Add, func(c corev1.Capability) bool { return c == "DAC_OVERRIDE" })
		}
	}
}

// mustHaveTheContract checks that a pod has everything that the pod of a Job without a template
// has.
func mustHaveTheContract(t *testing.T, pod corev1.PodTemplateSpec, without *batchv1.Job) {
	t.Helper()
	got, want := pod.Spec, without.Spec.Template.Spec
	for key, value := range without.Spec.Template.Labels {
		if pod.Labels[key] != value {
			t.Errorf("the label %s is %q", key, pod.Labels[key])
		}
	}
	for key, value := range without.Spec.Template.Annotations {
		if pod.Annotations[key] != value {
			t.Errorf("the annotation %s is %q", key, pod.Annotations[key])
		}
	}
	if !slices.Equal(pod.Finalizers, []string{jobs.FinalizerRecord}) || !slices.Contains(got.SchedulingGates, want.SchedulingGates[0]) {
		t.Errorf("finalizers %v, gates %v", pod.Finalizers, got.SchedulingGates)
	}
	if got.RestartPolicy != corev1.RestartPolicyNever || !equality.Semantic.DeepEqual(got.ActiveDeadlineSeconds, want.ActiveDeadlineSeconds) ||
		got.ServiceAccountName != want.ServiceAccountName || got.NodeName != "" {
		t.Errorf("restartPolicy %s, deadline %v, account %s, node %s", got.RestartPolicy, got.ActiveDeadlineSeconds, got.ServiceAccountName, got.NodeName)
	}
	for _, v := range want.Volumes {
		if v.EmptyDir == nil {
			mustContain(t, got.Volumes, v)
		}
	}
	var ours []corev1.Container
	for _, c := range got.Containers {
		if c.Name == contract.Container {
			ours = append(ours, c)
		}
	}
	if len(ours) != 1 {
		t.Errorf("%d containers %s", len(ours), contract.Container)
		return
	}
	c := want.Containers[0]
	for _, env := range c.Env {
		mustContain(t, ours[0].Env, env)
	}
	for _, mount := range c.VolumeMounts {
		mustContain(t, ours[0].VolumeMounts, mount)
	}
	if ours[0].Image != c.Image || !slices.Equal(ours[0].Args, c.Args) || !equality.Semantic.DeepEqual(ours[0].EnvFrom, c.EnvFrom) ||
		ours[0].TerminationMessagePath != c.TerminationMessagePath || ours[0].TerminationMessagePolicy != c.TerminationMessagePolicy ||
		ours[0].RestartPolicy != nil {
		t.Errorf("the container is %+v", ours[0])
	}
}

func mustContain[T any](t *testing.T, all []T, one T) {
	t.Helper()
	if !slices.ContainsFunc(all, func(is T) bool { return equality.Semantic.DeepEqual(is, one) }) {
		t.Errorf("%+v is not in %+v", one, all)
	}
}

func TestNullAtAnyLevelOfATemplateIsRefusedByItsPath(t *testing.T) {
	allowed := allow(t, fullFlags...)
	cfg, faults := judge(t, tree(t), allowed)
	if len(faults) > 0 {
		t.Fatalf("the full template is refused: %v", faults.ToAggregate())
	}
	mustHold(t, cfg, true)
	for i, at := range places(tree(t), "") {
		template := tree(t)
		places(template, "")[i].set(nil)
		if _, faults := judge(t, template, allowed); len(faults) != 1 || faults[0].BadValue != at.path {
			t.Errorf("null at %s: %v", at.path, faults)
		}
	}
}

// The API server refuses a pod that asks for more memory than it may have.
func TestMemoryIsLimitedUnlessATemplateSaysOtherwise(t *testing.T) {
	for name, tt := range map[string]struct{ template, request, limit string }{
		"no template":                   {"", "0", "256Mi"},
		"another container's":           {"{containers: [{name: notify, image: x, resources: {limits: {memory: 1Gi}}}]}", "0", "256Mi"},
		"a larger limit":                {resources("limits: {memory: 2Gi}"), "0", "2Gi"},
		"a small limit":                 {resources("limits: {memory: 16Mi}"), "0", "16Mi"},
		"a small request":               {resources("requests: {memory: 8Mi}"), "8Mi", "256Mi"},
		"a request above the limit":     {resources("requests: {memory: 1Gi}"), "1Gi", "1Gi"},
		"both":                          {resources("requests: {memory: 64Mi}, limits: {memory: 128Mi}"), "64Mi", "128Mi"},
		"other resources":               {resources("requests: {cpu: 1}, limits: {cpu: 2}"), "0", "256Mi"},
		"a limit for the whole pod":     {"{resources: {limits: {memory: 24Mi}}}", "0", "0"},
		"a request for the whole pod":   {"{resources: {requests: {memory: 24Mi}}}", "0", "0"},
		"other resources for all of it": {"{resources: {limits: {cpu: 1}}}", "0", "256Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			src := bare(t).Source
			if tt.template != "" {
				src.Data["pod-template"] = "spec: " + tt.template
			}
			cfg, faults := config.Parse(src, config.Dispatcher{Provisioner: contract.ProvisionerName})
			if len(faults) > 0 {
				t.Fatal(faults)
			}
			pod := fixture.Build(t, fixture.Provision(cfg, fixture.Claim())).Spec.Template.Spec
			i := slices.IndexFunc(pod.Containers, func(c corev1.Container) bool { return c.Name == contract.Container })
			got := pod.Containers[i].Resources
			if request, limit := got.Requests.Memory().String(), got.Limits.Memory().String(); request != tt.request || limit != tt.limit {
				t.Errorf("request %s, limit %s; want %s and %s", request, limit, tt.request, tt.limit)
			}
		})
	}
}

// A pod that fills its node waits for its volume, and its provisioning pod must find room there. What
// it requests is said, and not left to the defaults of a namespace.
func TestNothingIsRequestedThatAFullNodeCannotGive(t *testing.T) {
	for name, tt := range map[string]struct{ template, cpu string }{
		"no template":   {"", "0"},
		"a CPU limit":   {resources("limits: {cpu: 1}"), "0"},
		"a CPU request": {resources("requests: {cpu: 100m}"), "100m"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := fixture.Config(t, "Delete", map[string]string{"pod-template": "spec: " + cmp.Or(tt.template, "{}")})
			requests := fixture.Build(t, fixture.Provision(cfg, fixture.Claim())).Spec.Template.Spec.Containers[0].Resources.Requests
			cpu, hasCPU := requests[corev1.ResourceCPU]
			memory, hasMemory := requests[corev1.ResourceMemory]
			if !hasCPU || !hasMemory || cpu.String() != tt.cpu || !memory.IsZero() {
				t.Errorf("it requests %v", requests)
			}
		})
	}
}

// resources returns the spec of a template that says something of the container's resources.
func resources(text string) string {
	return "{containers: [{name: provisioner, resources: {" + text + "}}]}"
}
