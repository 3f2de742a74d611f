package config_test

import (
	"maps"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// The templates of pods that reach a storage, by a mounted ConfigMap and by the files of their node.
const (
	onNetwork = "spec: {containers: [{name: provisioner, command: [a]}], volumes: [{name: v, configMap: {name: ceph-a}}]}"
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

// Where the nodes are the storage, an older revision keeps its own: a delete that finds nothing on
// another node ends with success.
func TestTheNodesOfAnOlderRevisionMayBeItsStorage(t *testing.T) {
	affinity := onNode[:len(onNode)-1] + ", tolerations: [{operator: Exists}], affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " +
		"{nodeSelectorTerms: [{matchExpressions: [{key: rack, operator: In, values: [b]}]}]}}}}"
	for name, tt := range map[string]struct {
		template, runOn string
		selector        string
	}{
		"the files of the node":          {onNode, "any", "a"},
		"the network of the node":        {"spec: {hostNetwork: true}", "any", "a"},
		"files of the node of a volume":  {onNode, "selected-node", "b"},
		"nothing of the node is in use":  {onNetwork, "any", "b"},
		"without a template of its own ": {"", "any", "b"},
	} {
		t.Run(name, func(t *testing.T) {
			made := parsed(t, map[string]string{"pod-template": tt.template, "run-on": tt.runOn, "node-selector": "rack=a"})
			got := made.ScheduledAs(parsed(t, map[string]string{"pod-template": affinity, "run-on": tt.runOn, "node-selector": "rack=b"})).Scheduling
			if got.NodeSelector["rack"] != tt.selector || (got.Affinity == nil) != (tt.selector == "a") || len(got.Tolerations) != 1 {
				t.Errorf("it is scheduled as %+v", got)
			}
		})
	}
}
