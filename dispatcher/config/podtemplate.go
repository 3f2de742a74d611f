package config

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// systemPriority is how the names of Kubernetes' own PriorityClasses begin.
const systemPriority = "system-"

func (p *parser) podTemplate() {
	template, encoded := p.decodeTemplate(p.src.Data[keyPodTemplate])
	p.scheduling(template.Spec)
	if encoded == nil {
		return
	}
	p.cfg.Template = encoded
	p.checkMeta(template)
	p.checkLabels(template)
	p.checkSpec(template.Spec)
	p.checkGracePeriods(template.Spec)
	if p.cfg.Writer == DispatcherWrites {
		p.checkNoToken(template)
	}
	p.checkContainers(template)
}

// decodeTemplate returns a template, and the same in JSON, or nil if there is none without faults.
// It decodes as strictly as the API server can: no field twice, none that is unknown or in other
// capitals. What is not decoded here would still be merged. A text of nothing but comments is no
// template.
func (p *parser) decodeTemplate(text string) (template corev1.PodTemplateSpec, inJSON []byte) {
	encoded, err := templateJSON(text)
	var values any
	if err == nil {
		err = json.Unmarshal(encoded, &values)
	}
	if err == nil && values == nil {
		return template, nil
	}
	if text, found := costlyQuantity(values, false); found {
		p.invalid(keyPodTemplate, text, "a quantity may have at most 64 digits, and two in its exponent")
		return template, nil
	}
	if err == nil {
		var unknown []error
		unknown, err = kjson.UnmarshalStrict(encoded, &template)
		err = errors.Join(append(unknown, err)...)
	}
	if err != nil {
		p.invalid(keyPodTemplate, "(YAML)", "must be a PodTemplateSpec: %v", err)
		return template, nil
	}
	nulls := nullsIn(values, "")
	for _, at := range nulls {
		p.invalid(keyPodTemplate, at, "may not be null, which would remove the dispatcher's own value: omit the field")
	}
	if len(nulls) > 0 {
		return template, nil
	}
	return template, encoded
}

// nullsIn returns the paths of all nulls in a decoded value, in a stable order.
func nullsIn(value any, at string) []string {
	var out []string
	switch v := value.(type) {
	case nil:
		return []string{at}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, nullsIn(v[key], strings.TrimPrefix(at+"."+key, "."))...)
		}
	case []any:
		for i, item := range v {
			out = append(out, nullsIn(item, at+"["+strconv.Itoa(i)+"]")...)
		}
	}
	return out
}

// checkSpec reports fields of the pod that are not a template's to set.
func (p *parser) checkSpec(spec corev1.PodSpec) {
	if spec.RestartPolicy != "" {
		p.invalid(keyPodTemplate, string(spec.RestartPolicy), "may not set restartPolicy")
	}
	if spec.NodeName != "" {
		p.invalid(keyPodTemplate, spec.NodeName, "may not set nodeName, which the API server refuses on a pod with a scheduling gate: %s selects nodes", keyNodeSelector)
	}
	if spec.ServiceAccountName != "" || spec.DeprecatedServiceAccount != "" {
		p.invalid(keyPodTemplate, spec.ServiceAccountName, "may not name a ServiceAccount: %s does", keyServiceAccount)
	}
	p.checkAntiAffinity(spec.Affinity)
	if spec.OS != nil && spec.OS.Name != corev1.Linux {
		p.invalid(keyPodTemplate, string(spec.OS.Name), "may not set an os other than linux: Pod Security checks less on other systems")
	}
	if len(spec.EphemeralContainers) > 0 {
		p.invalid(keyPodTemplate, spec.EphemeralContainers[0].Name, "may not set ephemeralContainers, which the API server refuses in a template")
	}
}

// checkAntiAffinity reports a required anti-affinity, which other pods have to satisfy as well.
func (p *parser) checkAntiAffinity(a *corev1.Affinity) {
	if a != nil && a.PodAntiAffinity != nil && len(a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution) > 0 {
		p.invalid(keyPodTemplate, "podAntiAffinity", "may not require a podAntiAffinity, since the scheduler keeps the pods of other classes from these nodes as well: prefer it, or use topologySpreadConstraints")
	}
}

// checkGracePeriods limits how long the containers may take to end beyond their deadline: so long
// the next run waits if the pod is deleted by force.
func (p *parser) checkGracePeriods(spec corev1.PodSpec) {
	p.checkGracePeriod("terminationGracePeriodSeconds", spec.TerminationGracePeriodSeconds)
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		for _, probe := range []*corev1.Probe{c.LivenessProbe, c.StartupProbe} {
			if probe != nil {
				p.checkGracePeriod("terminationGracePeriodSeconds of a probe of the container "+c.Name, probe.TerminationGracePeriodSeconds)
			}
		}
	}
}

func (p *parser) checkGracePeriod(name string, grace *int64) {
	limit := max(p.cfg.Timeout, 30*time.Second)
	if grace != nil && *grace > int64(limit/time.Second) {
		p.invalid(keyPodTemplate, strconv.FormatInt(*grace, 10), "%s may not exceed %s, or 30 s if that is longer", name, keyTimeout)
	}
}

// checkLabels reports labels of a template that are the dispatcher's. A template's labels stand on
// the Job as well, and the dispatcher finds a claim's Jobs by its own labels.
func (p *parser) checkLabels(template corev1.PodTemplateSpec) {
	for _, label := range slices.Sorted(maps.Keys(template.Labels)) {
		domain, _, _ := strings.Cut(label, "/")
		if own := strings.TrimSuffix(contract.Domain, "/"); domain == own || strings.HasSuffix(domain, "."+own) {
			p.invalid(keyPodTemplate, label, "labels of %s are reserved for the dispatcher", own)
		}
	}
}

// checkNoToken reports every way in which a template gives the container a token although the
// dispatcher writes the PV.
func (p *parser) checkNoToken(template corev1.PodTemplateSpec) {
	if auto := template.Spec.AutomountServiceAccountToken; auto != nil && *auto {
		p.invalid(keyPodTemplate, "automountServiceAccountToken", "with %s: %s the container gets no token", keyWritePV, DispatcherWrites)
	}
	for _, v := range template.Spec.Volumes {
		if v.Projected != nil && slices.ContainsFunc(v.Projected.Sources, func(s corev1.VolumeProjection) bool { return s.ServiceAccountToken != nil }) {
			p.invalid(keyPodTemplate, v.Name, "with %s: %s the container gets no token", keyWritePV, DispatcherWrites)
		}
	}
}

// checkRestartRules reports a rule that restarts all containers, the container provisioner among them.
func (p *parser) checkRestartRules(c corev1.Container) {
	if slices.ContainsFunc(c.RestartPolicyRules, func(r corev1.ContainerRestartRule) bool {
		return r.Action == corev1.ContainerRestartRuleActionRestartAllContainers
	}) {
		p.invalid(keyPodTemplate, c.Name, "restartPolicyRules may not have the action %s: the exit code of the container %s is the verdict",
			corev1.ContainerRestartRuleActionRestartAllContainers, contract.Container)
	}
}

// checkContainers reports where a template sets what the contract fixes.
func (p *parser) checkContainers(template corev1.PodTemplateSpec) {
	for _, c := range slices.Concat(template.Spec.InitContainers, template.Spec.Containers) {
		p.checkRestartRules(c)
		if c.Name != contract.Container {
			continue
		}
		if c.RestartPolicy != nil || len(c.RestartPolicyRules) > 0 || c.TerminationMessagePath != "" ||
			c.TerminationMessagePolicy != "" || len(c.Args) > 0 {
			p.invalid(keyPodTemplate, c.Name, "may not set args, restartPolicy, restartPolicyRules, terminationMessagePath "+
				"or terminationMessagePolicy of the container %s: its exit code is the verdict", contract.Container)
		}
		p.checkProgram(c)
	}
}

// checkProgram reports where a template sets the command or the variables of the container that are
// the dispatcher's.
func (p *parser) checkProgram(c corev1.Container) {
	if p.cfg.Script != "" && len(c.Command) > 0 {
		p.invalid(keyPodTemplate, c.Name, "may not set the command of the container %s beside the key %s, which is its program", contract.Container, keyScript)
	}
	for _, env := range c.Env {
		if strings.HasPrefix(env.Name, contract.EnvPrefix) {
			p.invalid(keyPodTemplate, env.Name, "variables that begin with %s are reserved for the dispatcher", contract.EnvPrefix)
		}
	}
}

// checkMeta reports what a template's metadata and priority may not have.
func (p *parser) checkMeta(template corev1.PodTemplateSpec) {
	if len(template.Finalizers) > 0 {
		p.invalid(keyPodTemplate, template.Finalizers[0], "may not set finalizers: no controller would remove them from the pods")
	}
	if name := template.Spec.PriorityClassName; strings.HasPrefix(name, systemPriority) {
		p.invalid(keyPodTemplate, name, "priorityClassName may not be a class of Kubernetes' own components: the pods would preempt others")
	}
}
