package config

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// systemPriority is how the names of Kubernetes' own PriorityClasses begin.
const systemPriority = "system-"

func (p *parser) podTemplate() {
	text := p.src.Data[keyPodTemplate]
	if strings.TrimSpace(text) == "" {
		return
	}
	var template corev1.PodTemplateSpec
	if err := yaml.UnmarshalStrict([]byte(text), &template); err != nil {
		p.invalid(keyPodTemplate, "(YAML)", "must be a PodTemplateSpec: %v", err)
		return
	}
	if template.Spec.RestartPolicy != "" {
		p.invalid(keyPodTemplate, string(template.Spec.RestartPolicy), "may not set restartPolicy")
	}
	if template.Spec.NodeName != "" {
		p.invalid(keyPodTemplate, template.Spec.NodeName, "may not set nodeName, which the API server refuses on a pod with a scheduling gate: %s selects nodes", keyNodeSelector)
	}
	p.checkGracePeriod(template.Spec.TerminationGracePeriodSeconds)
	if template.Spec.ServiceAccountName != "" || template.Spec.DeprecatedServiceAccount != "" {
		p.invalid(keyPodTemplate, template.Spec.ServiceAccountName, "may not name a ServiceAccount: %s does", keyServiceAccount)
	}
	if p.cfg.Writer == DispatcherWrites {
		p.checkNoToken(template)
	}
	p.cfg.Template = []byte(text)
	p.checkMeta(template)
	p.checkLabels(template)
	p.checkContainers(template)
}

// checkLabels reports labels of a template that are the dispatcher's. A template's labels stand on the Job as well,
// and the dispatcher finds a claim's Jobs by its own labels.
// checkGracePeriod limits how long a pod may take to end beyond its deadline: so long the next run waits if the pod is deleted by force.
func (p *parser) checkGracePeriod(seconds *int64) {
	limit := max(p.cfg.Timeout, 30*time.Second)
	if seconds != nil && time.Duration(*seconds)*time.Second > limit {
		p.invalid(keyPodTemplate, strconv.FormatInt(*seconds, 10), "terminationGracePeriodSeconds may not be longer than %s and 30 s", keyTimeout)
	}
}

func (p *parser) checkLabels(template corev1.PodTemplateSpec) {
	for _, label := range slices.Sorted(maps.Keys(template.Labels)) {
		domain, _, _ := strings.Cut(label, "/")
		if own := strings.TrimSuffix(contract.Domain, "/"); domain == own || strings.HasSuffix(domain, "."+own) {
			p.invalid(keyPodTemplate, label, "labels of %s are the dispatcher's", own)
		}
	}
}

// checkNoToken reports every way in which a template gives the container a token although the dispatcher writes the
// PV.
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

// checkContainers reports where a template sets what the contract fixes.
func (p *parser) checkContainers(template corev1.PodTemplateSpec) {
	for _, c := range template.Spec.Containers {
		if c.Name != contract.Container {
			continue
		}
		if c.RestartPolicy != nil || len(c.RestartPolicyRules) > 0 || c.TerminationMessagePath != "" ||
			c.TerminationMessagePolicy != "" || len(c.Args) > 0 {
			p.invalid(keyPodTemplate, c.Name, "may not set args, restartPolicy, restartPolicyRules, terminationMessagePath "+
				"or terminationMessagePolicy of the container %s: its exit is the verdict", contract.Container)
		}
		for _, env := range c.Env {
			if strings.HasPrefix(env.Name, contract.EnvPrefix) {
				p.invalid(keyPodTemplate, env.Name, "variables that begin with %s are the dispatcher's", contract.EnvPrefix)
			}
		}
	}
}

// checkMeta reports what a template's metadata and priority may not have.
func (p *parser) checkMeta(template corev1.PodTemplateSpec) {
	if len(template.Finalizers) > 0 {
		p.invalid(keyPodTemplate, template.Finalizers[0], "may not set finalizers: nothing would ever remove them from the pods")
	}
	if name := template.Spec.PriorityClassName; strings.HasPrefix(name, systemPriority) {
		p.invalid(keyPodTemplate, name, "may not use the priority of Kubernetes' own components: its pods would preempt others")
	}
}
