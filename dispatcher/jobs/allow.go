package jobs

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// Allowance is what the pods of one namespace may do beyond Pod Security "restricted". A ConfigMap
// alone must not be enough to reach a node: that was CVE-2025-62878 of local-path-provisioner.
type Allowance struct {
	HostPaths    []string // a pod mounts exactly these, and volumes are directories right below
	RunAsUsers   []int64
	Capabilities []corev1.Capability
	HostNetwork  bool
}

// Allowances are the Allowance of each namespace.
type Allowances map[string]Allowance

// Add parses one value of the flag --allow: NAMESPACE/host-path=/PATH, NAMESPACE/run-as-user=UID,
// NAMESPACE/capability=NAME or NAMESPACE/host-network=true.
func (a Allowances) Add(text string) error {
	namespace, rest, found := strings.Cut(text, "/")
	kind, value, ok := strings.Cut(rest, "=")
	if !found || !ok || namespace == "" || value == "" {
		return fmt.Errorf("--allow %q: must have the form NAMESPACE/KIND=VALUE", text)
	}
	one := a[namespace]
	if err := one.add(kind, value); err != nil {
		return fmt.Errorf("--allow %q: %w", text, err)
	}
	a[namespace] = one
	return nil
}

func (a *Allowance) add(kind, value string) error {
	switch kind {
	case "host-path":
		if !filepath.IsAbs(value) || filepath.Clean(value) != value || value == "/" {
			return errors.New("the directory must be an absolute, clean path below /")
		}
		a.HostPaths = append(a.HostPaths, value)
	case "run-as-user":
		uid, err := strconv.ParseInt(value, 10, 64)
		if err != nil {
			return fmt.Errorf("must name a numeric user: %w", err)
		}
		a.RunAsUsers = append(a.RunAsUsers, uid)
	case "capability":
		a.Capabilities = append(a.Capabilities, corev1.Capability(value))
	case "host-network":
		if value != "true" {
			return errors.New("can only be true; omit it otherwise")
		}
		a.HostNetwork = true
	default:
		return errors.New("the kind must be host-path, run-as-user, capability or host-network")
	}
	return nil
}

// Check returns which parts of a config's pod the dispatcher may not launch. It judges the pod as
// Build makes it: what is merged later could change what was judged before.
func Check(cfg config.Config, allowed Allowances) field.ErrorList {
	at := field.NewPath("data").Key("pod-template")
	// A claim's text is nothing but data in a pod, so one plan stands for all.
	p := Plan{Config: cfg, Verb: contract.Provision, PV: &corev1.PersistentVolume{}}
	fixed, err := contractTemplate(p)
	if err != nil {
		return field.ErrorList{field.InternalError(at, err)}
	}
	pod, err := podTemplate(p)
	if err != nil {
		return field.ErrorList{field.Invalid(at, "(YAML)", err.Error())}
	}
	var faults field.ErrorList
	for _, part := range changedParts(pod.Spec, fixed.Spec) {
		faults = append(faults, field.Forbidden(at, part+" is reserved for the dispatcher: use another name or path"))
	}
	faults = append(faults, allowed[cfg.Source.Namespace].deeperPaths(at, pod.Spec)...)
	allowed[cfg.Source.Namespace].strip(&pod.Spec)
	result := policy.AggregateCheckResults(restricted.EvaluatePod(
		api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}, &pod.ObjectMeta, &pod.Spec))
	if !result.Allowed {
		remedy := "change the pod template"
		if flags := missingFlags(cfg.Source.Namespace, pod.Spec); len(flags) > 0 {
			remedy += ", or add to the dispatcher's Deployment " + strings.Join(flags, " ") +
				", as deploy/node-directories does, and deploy/node-directories/btrfs for SYS_ADMIN"
		}
		faults = append(faults, field.Forbidden(at, fmt.Sprintf(
			"%s: no flag --allow of the dispatcher permits it. Remedy: %s", result.ForbiddenDetail(), remedy)))
	}
	return faults
}

// Needs returns the flags --allow that the dispatcher needs for a config.
func Needs(cfg config.Config) []string {
	pod, err := podTemplate(Plan{Config: cfg, Verb: contract.Provision, PV: &corev1.PersistentVolume{}})
	if err != nil {
		return nil // which is a fault of Check
	}
	return missingFlags(cfg.Source.Namespace, pod.Spec)
}

// restricted holds every check of Kubernetes' own Pod Security admission.
var restricted = func() policy.Evaluator {
	e, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		panic(err) // the library's own table of checks is broken
	}
	return e
}()

// strip removes what is allowed from a copy of the pod, so that the rest can be judged as
// restricted.
func (a Allowance) strip(spec *corev1.PodSpec) {
	// Pod Security lets a pod with a user namespace run as root. An API server whose feature gate
	// is off drops the field.
	spec.HostUsers = nil
	for i, v := range spec.Volumes {
		if v.HostPath != nil && a.AllowsHostPath(v.HostPath.Path) {
			spec.Volumes[i].VolumeSource = corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
		}
	}
	spec.HostNetwork = spec.HostNetwork && !a.HostNetwork
	if s := spec.SecurityContext; s != nil && s.RunAsUser != nil && slices.Contains(a.RunAsUsers, *s.RunAsUser) {
		s.RunAsUser, s.RunAsNonRoot = nil, new(true)
	}
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			a.stripContainer(list[i].SecurityContext)
		}
	}
}

// missingFlags returns the flags that would allow what strip has left in a pod. Some of it no flag
// allows.
func missingFlags(namespace string, spec corev1.PodSpec) (flags []string) {
	add := func(kind, value string) {
		flag := "--allow=" + namespace + "/" + kind + "=" + value
		if new(Allowance).add(kind, value) == nil && !slices.Contains(flags, flag) {
			flags = append(flags, flag)
		}
	}
	for _, v := range spec.Volumes {
		if v.HostPath != nil {
			add("host-path", v.HostPath.Path)
		}
	}
	if spec.HostNetwork {
		add("host-network", "true")
	}
	if s := spec.SecurityContext; s != nil && isRoot(s.RunAsUser) {
		add("run-as-user", "0")
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		missingOfContainer(c.SecurityContext, add)
	}
	return flags
}

func missingOfContainer(s *corev1.SecurityContext, add func(kind, value string)) {
	if s == nil {
		return
	}
	if isRoot(s.RunAsUser) {
		add("run-as-user", "0")
	}
	for _, one := range addedCapabilities(s) {
		add("capability", string(one))
	}
}

func isRoot(uid *int64) bool { return uid != nil && *uid == 0 }

// addedCapabilities returns those that Pod Security does not allow in any pod.
func addedCapabilities(s *corev1.SecurityContext) []corev1.Capability {
	if s.Capabilities == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Capabilities.Add),
		func(c corev1.Capability) bool { return c == "NET_BIND_SERVICE" })
}

func (a Allowance) stripContainer(s *corev1.SecurityContext) {
	if s == nil {
		return
	}
	if s.RunAsUser != nil && slices.Contains(a.RunAsUsers, *s.RunAsUser) {
		s.RunAsUser, s.RunAsNonRoot = nil, new(true)
	}
	if s.Capabilities != nil {
		s.Capabilities.Add = slices.DeleteFunc(s.Capabilities.Add, func(c corev1.Capability) bool {
			return slices.Contains(a.Capabilities, c)
		})
	}
}

// deeperPaths names the hostPaths below an allowed one, with the remedy.
func (a Allowance) deeperPaths(at *field.Path, spec corev1.PodSpec) (faults field.ErrorList) {
	for _, v := range spec.Volumes {
		if v.HostPath == nil || a.AllowsHostPath(v.HostPath.Path) {
			continue
		}
		for _, dir := range a.HostPaths {
			if strings.HasPrefix(v.HostPath.Path, dir+"/") {
				faults = append(faults, field.Forbidden(at, fmt.Sprintf("the hostPath %s of the volume %s is below %s, which --allow names, and the kubelet "+
					"follows symbolic links. Remedy: mount %s, and use subPath or subPathExpr for a directory below it", v.HostPath.Path, v.Name, dir, dir)))
			}
		}
	}
	return faults
}

// AllowsHostPath reports whether pods of the namespace may mount a directory of a node. It must be
// one that is listed: the kubelet follows symbolic links in a hostPath, and pods write below the
// listed ones.
func (a Allowance) AllowsHostPath(path string) bool { return slices.Contains(a.HostPaths, path) }

// VolumePaths returns where the volume of a PV may be on a node, by the name of the PV.
func (a Allowance) VolumePaths(pv string) []string {
	var paths []string
	for _, dir := range a.HostPaths {
		paths = append(paths, dir+"/"+pv)
	}
	return paths
}
