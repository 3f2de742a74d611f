package jobs

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// nonRoot is the user and group of the container unless a template names others. It is the
// customary "nonroot".
const nonRoot = 65532

const (
	flexVolume   = "flex"
	secretVolume = "flex-secret"
	tmpVolume    = "tmp"
	homeDir      = "/tmp"
)

// podTemplate merges the config's pod-template over a baseline that passes Pod Security
// "restricted", and the contract over both.
func podTemplate(p Plan) (corev1.PodTemplateSpec, error) {
	fixed, err := contractTemplate(p)
	if err != nil {
		return fixed, err
	}
	merged, err := overlay(baseline(), p.Config.Template)
	if err != nil {
		return merged, err
	}
	schedule(&merged.Spec, p.Config.Scheduling, p.Parallel)
	b, err := json.Marshal(fixed)
	if err != nil {
		return merged, fmt.Errorf("encode the contract's part of the pod: %w", err)
	}
	merged, err = overlay(merged, b)
	if err != nil {
		return merged, err
	}
	requireNodes(&merged.Spec, nodesFor(p))
	tolerate(&merged.Spec, tolerations(p))
	return merged, nil
}

// changedParts returns which volumes, variables and mounts of the contract have more in a merged
// pod than the contract says. A strategic merge keeps what a template has said of the same name: a
// second source of a volume, the subPath of a mount.
func changedParts(pod, fixed corev1.PodSpec) []string {
	var out []string
	for _, want := range fixed.Volumes {
		got := named(pod.Volumes, func(v corev1.Volume) bool { return v.Name == want.Name })
		if got.EmptyDir != nil && want.EmptyDir != nil {
			want.EmptyDir = got.EmptyDir // its medium may be memory
		}
		out = appendChanged(out, got, want, "the volume "+want.Name)
	}
	c := named(pod.Containers, isProvisioner)
	for _, want := range fixed.Containers[0].Env {
		got := named(c.Env, func(v corev1.EnvVar) bool { return v.Name == want.Name })
		out = appendChanged(out, got, want, "the variable "+want.Name)
	}
	for _, want := range fixed.Containers[0].VolumeMounts {
		got := named(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == want.MountPath })
		out = appendChanged(out, got, want, "the mount "+want.MountPath)
	}
	return out
}

// named returns the first item that matches, or an empty one.
func named[T any](all []T, matches func(T) bool) T {
	if i := slices.IndexFunc(all, matches); i >= 0 {
		return all[i]
	}
	return *new(T)
}

func appendChanged(out []string, got, want any, what string) []string {
	if equality.Semantic.DeepEqual(got, want) {
		return out
	}
	return append(out, what)
}

// overlay merges a PodTemplateSpec in JSON over another by the rules of a strategic merge:
// containers, volumes and variables by name, mounts by path.
func overlay(base corev1.PodTemplateSpec, over []byte) (corev1.PodTemplateSpec, error) {
	if len(over) == 0 {
		return base, nil
	}
	var out corev1.PodTemplateSpec
	under, err := json.Marshal(base)
	if err != nil {
		return out, fmt.Errorf("encode the pod's baseline: %w", err)
	}
	merged, err := strategicpatch.StrategicMergePatch(under, over, corev1.PodTemplateSpec{})
	if err != nil {
		return out, fmt.Errorf("merge the pod-template: %w", err)
	}
	if err := json.Unmarshal(merged, &out); err != nil {
		return out, fmt.Errorf("decode the merged pod-template: %w", err)
	}
	return out, nil
}

// baseline returns the part that a config's pod-template may change, as far as Pod Security allows.
func baseline() corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{Spec: corev1.PodSpec{
		// A ServiceAccount may say that its pods get no token. The container needs one to write the
		// PV, and a template may bring another.
		AutomountServiceAccountToken: new(true),
		// The variables of a Service named flex-… would be properties.
		EnableServiceLinks: new(false),
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot:   new(true),
			RunAsUser:      new(int64(nonRoot)),
			RunAsGroup:     new(int64(nonRoot)),
			FSGroup:        new(int64(nonRoot)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: contract.Container,
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false),
				ReadOnlyRootFilesystem:   new(true),
				Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
	}}
}

// MemoryLimit is how much memory the container may have unless a template says otherwise. A storage
// chooses how large its answers are, and without a limit one run could take all memory of its node,
// as often as max-parallel allows. kubectl needs some 50 MB, and so does cinder-provisioner for
// 10,000 volumes in pages of 1,000.
const MemoryLimit = "256Mi"

// scratchSize is how large the files in the container's /tmp may be, in bytes.
const scratchSize = 64 << 20

// defaultMemory adds what a template does not say of the container's memory. The API server refuses
// a request above the limit, and a container that may have more than its pod, so where a template
// says something, the defaults give way.
//
// The limit is that of one script: the scripts at work in all pods of a class are bounded together.
func defaultMemory(spec *corev1.PodSpec, parallel int) {
	if all := spec.Resources; all != nil && (!all.Requests.Memory().IsZero() || !all.Limits.Memory().IsZero()) {
		return
	}
	r := &spec.Containers[slices.IndexFunc(spec.Containers, isProvisioner)].Resources
	request := r.Requests[corev1.ResourceMemory] // zero, and not what Kubernetes takes for it: the limit
	limit, limited := r.Limits[corev1.ResourceMemory]
	if !limited {
		limit = resource.MustParse(MemoryLimit)
		limit.Mul(int64(max(parallel, 1)))
	}
	if request.Cmp(limit) > 0 && !limited {
		limit = request
	}
	r.Requests, r.Limits = withQuantity(r.Requests, corev1.ResourceMemory, request), withQuantity(r.Limits, corev1.ResourceMemory, limit)
}

func isProvisioner(c corev1.Container) bool { return c.Name == contract.Container }

func withQuantity(list corev1.ResourceList, name corev1.ResourceName, size resource.Quantity) corev1.ResourceList {
	if list == nil {
		list = corev1.ResourceList{}
	}
	list[name] = size
	return list
}

// contractTemplate returns the part that no pod-template may change.
func contractTemplate(p Plan) (corev1.PodTemplateSpec, error) {
	requests, pv, err := encode(p)
	if err != nil {
		return corev1.PodTemplateSpec{}, err
	}
	c := corev1.Container{
		Name:                     contract.Container,
		Image:                    p.Config.Image,
		ImagePullPolicy:          p.Config.PullPolicy,
		Args:                     []string{string(p.Verb)},
		Env:                      environment(p),
		TerminationMessagePath:   contract.TerminationLog,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		VolumeMounts: []corev1.VolumeMount{
			{Name: flexVolume, MountPath: contract.Dir, ReadOnly: true},
			{Name: tmpVolume, MountPath: homeDir},
		},
	}
	c.Command, c.WorkingDir = program(p)
	annotations := map[string]string{AnnRequest: requests, AnnPV: pv, contract.AnnRevision: p.Config.Source.Revision()}
	if len(p.With) > 0 {
		annotations[AnnUIDs] = uidsText(p)
	}
	if p.Config.Script != "" {
		annotations[AnnScript] = p.Config.Script
	}
	volumes := []corev1.Volume{contractFiles(p.Config), scratch(p.Parallel)}
	if name := p.Config.EnvSecret; name != "" {
		ref := corev1.LocalObjectReference{Name: name}
		c.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: ref}}}
	}
	if name := p.Config.FilesSecret; name != "" {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: secretVolume, MountPath: contract.SecretDir, ReadOnly: true})
		volumes = append(volumes, secretFiles(name))
	}
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{
			Labels:      labels(p),
			Annotations: annotations,
			// The pod is kept until it has been read, even if it is deleted by force. Otherwise it
			// would be unknown whether its container ever ran, and until when it may still run.
			Finalizers: []string{FinalizerRecord},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:   corev1.RestartPolicyNever,
			SchedulingGates: []corev1.PodSchedulingGate{{Name: GateConfirm}},
			// The kubelet enforces this deadline even when it cannot reach the API server.
			ActiveDeadlineSeconds: new(seconds(p.Config.Timeout)),
			ServiceAccountName:    account(p.Config),
			Containers:            []corev1.Container{c},
			Volumes:               volumes,
			// A container that does not write its PV needs no API, and gets no token that could be
			// stolen.
			AutomountServiceAccountToken: automountToken(p.Config.Writer),
		},
	}, nil
}

// program returns the command and the working directory of the container, or nothing where they are
// those of the image. A script has a working directory that it can write.
func program(p Plan) (command []string, dir string) {
	switch {
	case p.Config.Script == "":
		return nil, ""
	case p.Config.Each:
		return []string{"flex", "each", strconv.Itoa(max(p.Parallel, 1)), contract.ScriptFile}, homeDir
	default:
		return []string{contract.ScriptFile}, homeDir
	}
}

// contractFiles mounts the request, the PV and the script from the pod's own annotations. No other
// object is created, so none can be left behind.
func contractFiles(cfg config.Config) corev1.Volume {
	item := func(file, annotation string) corev1.DownwardAPIVolumeFile {
		return corev1.DownwardAPIVolumeFile{
			Path:     file,
			FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.annotations['" + annotation + "']"},
		}
	}
	items := []corev1.DownwardAPIVolumeFile{item("request.json", AnnRequest), item("pv.json", AnnPV)}
	if cfg.Script != "" {
		script := item(path.Base(contract.ScriptFile), AnnScript)
		script.Mode = new(int32(0o555))
		items = append(items, script)
	}
	return corev1.Volume{Name: flexVolume, VolumeSource: corev1.VolumeSource{
		DownwardAPI: &corev1.DownwardAPIVolumeSource{Items: items},
	}}
}

// scratch is the container's /tmp, with as much room for each script that works at a time.
func scratch(parallel int) corev1.Volume {
	return corev1.Volume{Name: tmpVolume, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
		SizeLimit: resource.NewQuantity(int64(max(parallel, 1))*scratchSize, resource.BinarySI),
	}}}
}

// secretFiles mounts a Secret, readable only by the pod's group, which fsGroup sets.
func secretFiles(name string) corev1.Volume {
	return corev1.Volume{Name: secretVolume, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{
		SecretName: name, DefaultMode: new(int32(0o440)),
	}}}
}

// automountToken returns that the pod gets no token, or nil where the template decides.
func automountToken(w config.Writer) *bool {
	if w == config.DispatcherWrites {
		return new(false)
	}
	return nil
}

// account returns the config's ServiceAccount, or the namespace's default where the config needs
// none, so that no admission plugin fills in another.
func account(cfg config.Config) string {
	if cfg.ServiceAccount == "" {
		return "default"
	}
	return cfg.ServiceAccount
}
