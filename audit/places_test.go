package audit_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/contract"
)

// spread is a healthy state in which the volumes of the class gold are on nodes: that of the PV on n1,
// whose hostname is h1. n2 was listed, too, and n3 was not.
func spread(changes ...func(*audit.State)) audit.State {
	s := healthy()
	s.ClusterUID = ownCluster
	for i := range 3 {
		s.Nodes = append(s.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i+1), Labels: map[string]string{corev1.LabelHostname: fmt.Sprint("h", i+1)}}})
	}
	s.OnNodes = map[string]map[string][]audit.Volume{"gold": {"n1": s.Volumes["gold"], "n2": {}}}
	s.Volumes = map[string][]audit.Volume{}
	atHost("h1")(&s)
	for _, change := range changes {
		change(&s)
	}
	return s
}

// atHost lets the PV name hostnames.
func atHost(hosts ...string) func(*audit.State) {
	return func(s *audit.State) {
		s.PVs[0].Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: hosts}},
		}}}}
	}
}

// lists lets a node list volumes.
func lists(node string, volumes ...audit.Volume) func(*audit.State) {
	return func(s *audit.State) { s.OnNodes["gold"][node] = volumes }
}

func unlisted(node string) func(*audit.State) {
	return func(s *audit.State) { delete(s.OnNodes["gold"], node) }
}

func TestVolumesOnNodesAreJudgedByTheirNode(t *testing.T) {
	t.Parallel()
	own, orphan := audit.Volume{UID: uid, Volume: "v1"}, audit.Volume{UID: leftUID, Volume: leftID, ClusterUID: ownCluster, Class: "gold"}
	const missing = "VolumeMissing persistentvolume/pvc-" + uid
	for name, test := range map[string]struct {
		state audit.State
		want  []string
	}{
		"nothing is wrong":                           {spread(), nil},
		"an orphan on each of two nodes":             {spread(lists("n1", own, orphan), lists("n2", orphan)), []string{"VolumeLeft volume " + leftID + " on the node n1", "VolumeLeft volume " + leftID + " on the node n2"}},
		"its node has lost it":                       {spread(lists("n1")), []string{missing}},
		"another node has one of its claim":          {spread(lists("n1"), lists("n2", own)), []string{missing, "VolumeTwice volume v1 on the node n2"}},
		"another node has one, too":                  {spread(lists("n2", own)), []string{"VolumeTwice volume v1 on the node n2"}},
		"one node has two":                           {spread(lists("n1", own, audit.Volume{UID: uid, Volume: "v2"})), []string{"VolumeTwice volume v1 on the node n1", "VolumeTwice volume v2 on the node n1"}},
		"its node was not listed":                    {spread(unlisted("n1")), nil},
		"no node was listed":                         {spread(unlisted("n1"), unlisted("n2")), nil},
		"its node no longer exists":                  {spread(lists("n1"), atHost("h4")), nil},
		"one of its nodes was not listed":            {spread(lists("n1"), atHost("h1", "h3")), nil},
		"none of its nodes has it":                   {spread(lists("n1"), atHost("h1", "h2")), []string{missing}},
		"the other one of its nodes has it":          {spread(lists("n1"), lists("n2", own), atHost("h1", "h2")), nil},
		"two nodes have its hostname":                {spread(lists("n1"), lists("n2", own), func(s *audit.State) { s.Nodes[1].Labels[corev1.LabelHostname] = "h1" }), nil},
		"a PV that names no node, of a shared store": {spread(lists("n2", own), func(s *audit.State) { s.PVs[0].Spec.NodeAffinity = nil }), nil},
		"a volume of a claim that is waited for": {spread(lists("n2", orphan), func(s *audit.State) {
			s.Claims = append(s.Claims, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{UID: leftUID}})
		}), nil},
	} {
		var got []string
		for _, f := range audit.Check(test.state) {
			got = append(got, string(f.Kind)+" "+f.Object)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: found %q, want %q", name, got, test.want)
		}
	}
}

// A claim is provisioned on another node than before, between the lists of the two.
func TestAVolumeThatMovesBetweenTheListsOfTwoNodesIsNoFinding(t *testing.T) {
	t.Parallel()
	v := audit.Volume{UID: uid, Volume: "v1"}
	before, after := spread(), spread(lists("n1", v), lists("n2", v))
	before.PVs = nil
	if found := audit.CheckAround(before, after); len(found) > 0 {
		t.Errorf("found %+v", found)
	}
	if found := audit.CheckAround(after, after); len(found) != 1 || found[0].Kind != audit.VolumeTwice {
		t.Errorf("found %+v", found)
	}
}

func TestUsagesAreThoseOfThePVsNode(t *testing.T) {
	t.Parallel()
	s := spread(lists("n1", audit.Volume{UID: uid, Volume: "v1", Used: contract.UsedBytes(1)}), lists("n2", audit.Volume{UID: uid, Volume: "v1", Used: contract.UsedBytes(2)}))
	if got := audit.Usages(s); len(got) != 1 || got[0].Used != 1 {
		t.Errorf("the usages are %+v", got)
	}
}

func TestPVsAreCountedByNode(t *testing.T) {
	t.Parallel()
	s := spread()
	for i, host := range []string{"h1", "h2", "lost", "lost", "leaving"} {
		pv := s.PVs[0].DeepCopy()
		pv.Name = fmt.Sprint(i)
		pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values = []string{host}
		if host == "leaving" {
			pv.DeletionTimestamp = new(metav1.Now())
		}
		s.PVs = append(s.PVs, pv)
	}
	free := s.PVs[0].DeepCopy()
	free.Spec.NodeAffinity = nil
	other := s.PVs[0].DeepCopy()
	other.Spec.StorageClassName = "silver"
	s.PVs = append(s.PVs, free, other)
	on, gone := audit.PVsOn(s, "gold")
	if fmt.Sprint(on, gone) != "map[n1:2 n2:1] map[lost:2]" {
		t.Errorf("on nodes are %v, and on nodes that no longer exist %v", on, gone)
	}
}

// Many PVs on many nodes are compared in a moment: no PV is compared with each node.
func TestThePVsOfManyNodesAreJudgedInAMoment(t *testing.T) {
	t.Parallel()
	s := spread()
	for i := range 5000 {
		name := fmt.Sprint("many-", i)
		s.Nodes = append(s.Nodes, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name}}})
		s.OnNodes["gold"][name] = []audit.Volume{}
		for j := range 2 {
			pv := s.PVs[0].DeepCopy()
			pv.Name, pv.Annotations[contract.AnnClaimUID] = fmt.Sprint(i, "-", j), fmt.Sprint(i, "-", j)
			pv.Spec.NodeAffinity.Required.NodeSelectorTerms[0].MatchExpressions[0].Values = []string{name}
			s.PVs = append(s.PVs, pv)
		}
	}
	start := time.Now()
	missing := 0
	for _, f := range audit.Check(s) {
		if f.Kind == audit.VolumeMissing {
			missing++
		}
	}
	if took := time.Since(start); took > 10*time.Second || missing != 10_000 {
		t.Errorf("%d of 10,000 PVs are missing, after %s", missing, took)
	}
}
