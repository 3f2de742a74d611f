package pvs_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

func TestNodeOfAVolumeIsTheOneThatItsAffinityNames(t *testing.T) {
	hosts := func(names ...string) corev1.NodeSelectorTerm {
		return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
			{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: names},
		}}
	}
	named := corev1.NodeSelectorTerm{MatchFields: []corev1.NodeSelectorRequirement{
		{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}},
	}}
	zone := corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: corev1.LabelTopologyZone, Operator: corev1.NodeSelectorOpIn, Values: []string{"west"}},
	}}
	node := &corev1.Node{}
	node.Name, node.Labels = "b", map[string]string{corev1.LabelHostname: "a", corev1.LabelTopologyZone: "west"}
	for name, tt := range map[string]struct {
		terms   []corev1.NodeSelectorTerm
		node    string
		reaches bool
	}{
		"nowhere in particular":        {nil, "", true},
		"by its hostname":              {[]corev1.NodeSelectorTerm{hosts("a")}, "a", true},
		"by its name":                  {[]corev1.NodeSelectorTerm{named}, "b", true},
		"another":                      {[]corev1.NodeSelectorTerm{hosts("c")}, "c", false},
		"one of two":                   {[]corev1.NodeSelectorTerm{hosts("c", "a")}, "", true},
		"one or the other":             {[]corev1.NodeSelectorTerm{hosts("c"), hosts("a")}, "", true},
		"any of a zone":                {[]corev1.NodeSelectorTerm{zone}, "", true},
		"a term without a requirement": {[]corev1.NodeSelectorTerm{{}}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			pv := &corev1.PersistentVolume{}
			if tt.terms != nil {
				pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: tt.terms}}
			}
			if got := pvs.NodeOf(pv); got != tt.node {
				t.Errorf("its node is %q, want %q", got, tt.node)
			}
			if got := len(pvs.Reachable(pv, []*corev1.Node{node})) > 0; got != tt.reaches {
				t.Errorf("reached: %t, want %t", got, tt.reaches)
			}
		})
	}
}

func TestSharedHostnameIsOneByWhichTheAffinityNamesANode(t *testing.T) {
	node := func(name, host string) *corev1.Node {
		n := &corev1.Node{}
		n.Name, n.Labels = name, map[string]string{corev1.LabelHostname: host, corev1.LabelTopologyZone: "west"}
		return n
	}
	in := func(key string, values ...string) *corev1.PersistentVolume {
		pv := &corev1.PersistentVolume{}
		pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}},
		}}}}
		return pv
	}
	all := []*corev1.Node{node("a", "a"), node("b", "a"), node("c", "c")}
	for name, tt := range map[string]struct {
		pv   *corev1.PersistentVolume
		host string
	}{
		"of two nodes":         {in(corev1.LabelHostname, "a"), "a"},
		"one of several":       {in(corev1.LabelHostname, "c", "a"), "a"},
		"of one node":          {in(corev1.LabelHostname, "c"), ""},
		"nodes by their zone":  {in(corev1.LabelTopologyZone, "west"), ""},
		"without any affinity": {&corev1.PersistentVolume{}, ""},
	} {
		if host, nodes := pvs.SharedHostname(tt.pv, pvs.Reachable(tt.pv, all)); host != tt.host || host != "" && len(nodes) != 2 {
			t.Errorf("%s: %q of %v", name, host, nodes)
		}
	}
}
