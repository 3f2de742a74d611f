package config_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// The templates of pods that reach a storage, by a mounted ConfigMap and by the files of their node.
const (
	onNetwork = "spec: {containers: [{name: provisioner, command: [a]}], volumes: [{name: v, configMap: {name: ceph-a}}]}"
	onAgent   = "spec: {containers: [{name: provisioner, env: [{name: AGENT, valueFrom: {fieldRef: {fieldPath: status.hostIP}}}]}]}"
	onNode    = "spec: {containers: [{name: provisioner, command: [a]}], volumes: [{name: v, hostPath: {path: /srv}}]}"
)

// What has been corrected may delete a volume only where it certainly looks for it in its storage.
func TestTwoConfigsReachTheSameStorage(t *testing.T) {
	for name, tt := range map[string]struct {
		made  string // the template
		today map[string]string
		same  bool
	}{
		"the same":                          {onNetwork, nil, true},
		"another image":                     {onNetwork, map[string]string{"image": "localhost/other:v2", "image-pull-policy": "Always"}, true},
		"other limits":                      {onNetwork, map[string]string{"timeout": "1m", "max-parallel": "1", "max-attempts": "3", "batch-size": "2"}, true},
		"another verb":                      {onNetwork, map[string]string{"verbs": "provision,delete,expand"}, true},
		"another command":                   {onNetwork, map[string]string{"pod-template": "spec: {containers: [{name: provisioner, command: [b]}], volumes: [{name: v, configMap: {name: ceph-a}}]}"}, true},
		"a first command":                   {"", map[string]string{"pod-template": "spec: {containers: [{name: provisioner, command: [b]}]}"}, true},
		"another user":                      {"", map[string]string{"pod-template": "spec: {securityContext: {runAsUser: 1000}}"}, true},
		"a label that keeps a mesh out":     {"", map[string]string{"pod-template": "metadata: {labels: {sidecar.istio.io/inject: \"false\"}}"}, true},
		"another scheduling":                {onNetwork, map[string]string{"node-selector": "rack=b"}, true},
		"other tolerations of a node":       {onNode, map[string]string{"pod-template": onNode[:len(onNode)-1] + ", tolerations: [{operator: Exists}]}"}, true},
		"another agent, by its node":        {onAgent, map[string]string{"node-selector": "rack=b"}, false},
		"another server, by its node":       {onNode, map[string]string{"node-selector": "rack=b"}, false},
		"another property":                  {onNetwork, map[string]string{"backend": "b"}, false},
		"another Secret of files":           {onNetwork, map[string]string{"files-from-secret": "other"}, false},
		"another Secret of the environment": {onNetwork, map[string]string{"env-from-secret": "other"}, false},
		"another ServiceAccount":            {onNetwork, map[string]string{"service-account-name": "other"}, false},
		"selected nodes":                    {onNetwork, map[string]string{"run-on": "selected-node"}, false},
		"another mounted ConfigMap":         {onNetwork, map[string]string{"pod-template": "spec: {containers: [{name: provisioner}], volumes: [{name: v, configMap: {name: ceph-b}}]}"}, false},
		"another variable":                  {"", map[string]string{"pod-template": "spec: {containers: [{name: provisioner, env: [{name: SERVER, value: b}]}]}"}, false},
		"another tunnel":                    {"", map[string]string{"pod-template": "spec: {initContainers: [{name: tunnel, image: t, args: [array-b]}]}"}, false},
		"another network, by an annotation": {"", map[string]string{"pod-template": "metadata: {annotations: {k8s.v1.cni.cncf.io/networks: san-b}}"}, false},
		"another name server":               {"", map[string]string{"pod-template": "spec: {dnsConfig: {nameservers: [192.0.2.2]}}"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			before := map[string]string{"pod-template": tt.made, "backend": "a", "node-selector": "rack=a"}
			after := maps.Clone(before)
			maps.Copy(after, tt.today)
			made, today := parsed(t, before), parsed(t, after)
			if got := config.SameStorage(made, today); got != tt.same {
				t.Errorf("SameStorage is %t", got)
			}
		})
	}
	made, today := parsed(t, nil), parsed(t, nil)
	if today.Source.Name = "other"; config.SameStorage(made, today) {
		t.Error("another ConfigMap counts as the same storage")
	}
}

func parsed(t *testing.T, keys map[string]string) config.Config {
	t.Helper()
	s := source(binding("WaitForFirstConsumer"))
	maps.Copy(s.Data, keys)
	return parse(t, s)
}

// An older revision keeps its nodes, with the tolerations that go with them.
func TestAnOlderRevisionKeepsItsNodes(t *testing.T) {
	const tolerates = ", tolerations: [{key: a, operator: Exists}]}"
	made := parsed(t, map[string]string{"node-selector": "rack=a", "pod-template": onNetwork[:len(onNetwork)-1] + tolerates})
	today := parsed(t, map[string]string{"node-selector": "rack=b", "pod-template": onNetwork[:len(onNetwork)-1] + ", tolerations: [{key: b, operator: Exists}]}"})
	got := made.ScheduledAs(today).Scheduling
	if got.NodeSelector["rack"] != "a" || len(got.Tolerations) != 2 || len(made.Scheduling.Tolerations) != 1 {
		t.Errorf("it is scheduled as %+v", got)
	}
	if got := made.ScheduledAs(today).OnNodesOf(today).Scheduling; got.NodeSelector["rack"] != "b" || len(got.Tolerations) != 2 {
		t.Errorf("on the nodes of today it is scheduled as %+v", got)
	}
}

// A pod has its limits as a whole, and a template's other containers share them: a part of another
// template might not fit.
func TestTheResourcesOfAWholePodAreNotTakenApart(t *testing.T) {
	whole := parsed(t, map[string]string{"pod-template": "spec: {resources: {limits: {memory: 1Gi}}}"})
	one := parsed(t, map[string]string{"pod-template": "spec: {containers: [{name: provisioner, resources: {limits: {memory: 2Gi}}}]}"})
	if got := whole.ScheduledAs(one).Scheduling; got.Resources == nil || len(got.Containers) != 0 {
		t.Errorf("it is scheduled as %+v", got)
	}
	if got := one.ScheduledAs(whole).Scheduling; got.Resources != nil || len(got.Containers) != 1 {
		t.Errorf("it is scheduled as %+v", got)
	}
}

// Kubernetes copies the zone of a node to the labels of its pods, and an image may read its storage
// from any label.
func TestConfigsWhosePodsReadOtherLabelsAreNotOfTheSameStorage(t *testing.T) {
	const byLabel = "metadata: {labels: {array: %}}\nspec: {containers: [{name: provisioner, env: [{name: ARRAY, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['array']\"}}}]}]}"
	const byZone = "spec: {containers: [{name: provisioner, env: [{name: ZONE, valueFrom: {fieldRef: {fieldPath: \"metadata.labels['topology.kubernetes.io/zone']\"}}}]}]}"
	const byVolume = "metadata: {labels: {array: %}}\nspec: {volumes: [{name: v, downwardAPI: {items: [{path: labels, fieldRef: {fieldPath: metadata.labels}}]}}]}"
	at := func(s, array string) string { return strings.ReplaceAll(s, "%", array) }
	for name, tt := range map[string][2]map[string]string{
		"label by env":    {{"pod-template": at(byLabel, "a")}, {"pod-template": at(byLabel, "b")}},
		"label by volume": {{"pod-template": at(byVolume, "a")}, {"pod-template": at(byVolume, "b")}},
		"zone of the node": {
			{"pod-template": byZone, "node-selector": "topology.kubernetes.io/zone=a"},
			{"pod-template": byZone, "node-selector": "topology.kubernetes.io/zone=b"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if config.SameStorage(parsed(t, tt[0]), parsed(t, tt[1])) {
				t.Error("they certainly reach the same storage, by SameStorage")
			}
		})
	}
}
