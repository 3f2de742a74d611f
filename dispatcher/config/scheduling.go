package config

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// scheduling notes where the pods go, and what they need there. The node selector of a template is
// merged into that of the key, as the pod's is.
func (p *parser) scheduling(template corev1.PodSpec) {
	selector := p.cfg.Scheduling.NodeSelector
	if selector == nil {
		selector = template.NodeSelector
	}
	maps.Copy(selector, template.NodeSelector)
	p.cfg.Scheduling = corev1.PodSpec{
		NodeSelector: selector, Affinity: template.Affinity, Tolerations: template.Tolerations, TopologySpreadConstraints: template.TopologySpreadConstraints,
		SchedulerName: template.SchedulerName, PriorityClassName: template.PriorityClassName, ImagePullSecrets: template.ImagePullSecrets, Resources: template.Resources,
	}
	p.cfg.onNodes = usesItsNode(template) && p.cfg.RunOn == RunAnywhere
	for _, c := range template.Containers {
		if c.Name == contract.Container {
			p.cfg.Scheduling.Containers = []corev1.Container{{Name: c.Name, Resources: c.Resources}}
		}
	}
	p.checkIsolation()
}

// ScheduledAs returns a config of an older revision with what the present one says of the pods' needs.
// A volume stays with the revision that made it, and would never be deleted where the cluster has other
// taints now or less room. Tolerations are added: those of the older revision go with its nodes. What a
// whole pod may use is not taken apart.
func (c Config) ScheduledAs(present Config) Config {
	own, out := c.Scheduling, present.Scheduling
	out.NodeSelector, out.Affinity, out.Tolerations = own.NodeSelector, own.Affinity, slices.Clone(own.Tolerations)
	for _, t := range present.Scheduling.Tolerations {
		if !slices.ContainsFunc(own.Tolerations, func(o corev1.Toleration) bool { return equality.Semantic.DeepEqual(o, t) }) {
			out.Tolerations = append(out.Tolerations, t)
		}
	}
	if own.Resources != nil || out.Resources != nil {
		out.Resources, out.Containers = own.Resources, own.Containers
	}
	c.MaxParallel, c.Scheduling = present.MaxParallel, out
	return c
}

// OnNodesOf returns a config of an older revision for the nodes of the present one. On the nodes of
// another storage a delete finds nothing, and the volume is lost: only where both certainly reach the
// same storage, and no node is left of the older revision's.
func (c Config) OnNodesOf(present Config) Config {
	c.Scheduling.NodeSelector, c.Scheduling.Affinity = present.Scheduling.NodeSelector, present.Scheduling.Affinity
	return c
}

// usesItsNode reports whether the pods of a template use the files, the network or the processes of
// their node, or ask which it is. Kubernetes copies zone and region of a node to the labels of its pods
// (plugin/pkg/admission/podtopologylabels, by default since 1.35).
func usesItsNode(spec corev1.PodSpec) bool {
	return spec.HostNetwork || spec.HostPID || spec.HostIPC || readsLabels(spec) || readsField(spec, "spec.nodeName") || readsField(spec, "status.hostIP") ||
		slices.ContainsFunc(spec.Volumes, func(v corev1.Volume) bool { return v.HostPath != nil })
}

// readsLabels reports whether containers of a template read labels of their pod.
func readsLabels(spec corev1.PodSpec) bool { return readsField(spec, "metadata.labels") }

// readsField reports whether containers of a template read a field of their pod that begins so, in a
// variable or a file.
func readsField(spec corev1.PodSpec, field string) bool {
	text, err := json.Marshal(spec)
	return err != nil || bytes.Contains(text, []byte(`"fieldPath":"`+field))
}
