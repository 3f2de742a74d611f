package config

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// DefaultOS is the operating system of the nodes that take the pod unless a config selects another,
// by the label that each kubelet sets.
const DefaultOS = "linux"

// kubeletLabels are the labels of Kubernetes' own that a kubelet may set on its own Node, and
// kubeletDomains those whose labels it may set: IsKubeletLabel of
// k8s.io/kubelet/pkg/apis/well_known_labels.go.
var (
	kubeletLabels = []string{
		corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelTopologyRegion, corev1.LabelFailureDomainBetaZone, corev1.LabelFailureDomainBetaRegion,
		corev1.LabelInstanceType, corev1.LabelInstanceTypeStable, corev1.LabelOSStable, corev1.LabelArchStable, "beta.kubernetes.io/os", "beta.kubernetes.io/arch",
	}
	kubeletDomains = []string{corev1.LabelNamespaceSuffixKubelet, corev1.LabelNamespaceSuffixNode}
)

// mayKubeletSet reports whether the admission plugin NodeRestriction lets a kubelet set a label on
// its own Node, as getForbiddenLabels of plugin/pkg/admission/noderestriction/admission.go does:
// any label outside of Kubernetes' domains, and some within.
func mayKubeletSet(label string) bool {
	domain, _, _ := strings.Cut(label, "/")
	in := func(parent string) bool { return domain == parent || strings.HasSuffix(domain, "."+parent) }
	if !in("kubernetes.io") && !in("k8s.io") || !strings.Contains(label, "/") {
		return true
	}
	return slices.Contains(kubeletLabels, label) || slices.ContainsFunc(kubeletDomains, in)
}

// IsIsolated reports whether runs go only to nodes with a label that no kubelet may set on its own Node:
// root of another node cannot draw them there, with the storage's login.
func (c Config) IsIsolated() bool {
	for name := range c.Scheduling.NodeSelector {
		if !mayKubeletSet(name) {
			return true
		}
	}
	return false
}

// checkIsolation warns of a selector that isolates nothing. To select an operating system or an
// architecture is not meant to.
func (p *parser) checkIsolation() {
	names := slices.Sorted(maps.Keys(p.cfg.Scheduling.NodeSelector))
	names = slices.DeleteFunc(names, func(name string) bool { return name == corev1.LabelOSStable || name == corev1.LabelArchStable })
	if len(names) == 0 || p.cfg.IsIsolated() {
		return
	}
	p.cfg.Warnings = append(p.cfg.Warnings, "the nodes are selected by "+strings.Join(names, ",")+", which every kubelet may set on its own node. A user with root access to any "+
		"node can attract the Jobs, and read the Secrets that they use. Remedy: label the nodes with a key that begins with "+
		corev1.LabelNamespaceNodeRestriction+"/, which kubelets may not set, and set it in "+keyNodeSelector)
}
