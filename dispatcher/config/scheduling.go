package config

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

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
	usesNode := template.HostNetwork || template.HostPID || template.HostIPC || slices.ContainsFunc(template.Volumes, func(v corev1.Volume) bool { return v.HostPath != nil })
	p.cfg.onNodes = usesNode && p.cfg.RunOn == RunAnywhere
	for _, c := range template.Containers {
		if c.Name == contract.Container {
			p.cfg.Scheduling.Containers = []corev1.Container{{Name: c.Name, Resources: c.Resources}}
		}
	}
	p.checkIsolation()
}

// ScheduledAs returns a config of an older revision with the scheduling of the present one. A volume
// stays with the revision that made it, and would never be deleted where the cluster has other nodes
// now, other taints or less room. Where the nodes are the storage its runs go to those of before: on
// another a delete once found nothing, and the volume was lost.
func (c Config) ScheduledAs(today Config) Config {
	selector, affinity := c.Scheduling.NodeSelector, c.Scheduling.Affinity
	if c.MaxParallel, c.Scheduling = today.MaxParallel, today.Scheduling; c.onNodes {
		c.Scheduling.NodeSelector, c.Scheduling.Affinity = selector, affinity
	}
	return c
}
