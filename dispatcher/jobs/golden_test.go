package jobs_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

func TestGoldenJobOfTheLeastConfig(t *testing.T) {
	fixture.Golden(t, "job-least", fixture.Build(t, fixture.Provision(fixture.Config(t, "Delete", nil), fixture.Claim())))
}

// everyKey returns a config with every key set.
var everyKey = map[string]string{
	"image-pull-policy": "Never", "node-selector": "storage=fast", "run-on": "selected-node",
	"env-from-secret": "login", "files-from-secret": "cloud", "timeout": "90s", "max-attempts": "3", "max-parallel": "2",
	"zone": "west",
	"pod-template": `
metadata:
  labels: {kueue.x-k8s.io/queue-name: storage}
  annotations: {example.com/note: kept}
spec:
  tolerations: [{key: storage, operator: Exists, effect: NoSchedule}]
  priorityClassName: high
  imagePullSecrets: [{name: registry}]
  nodeSelector: {disk: ssd}
  affinity:
    nodeAffinity:
      requiredDuringSchedulingIgnoredDuringExecution:
        nodeSelectorTerms:
        - matchExpressions: [{key: rack, operator: In, values: ["1"]}]
        - matchExpressions: [{key: rack, operator: In, values: ["2"]}]
  initContainers:
  - name: copy
    image: localhost/copy:v1
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
    volumeMounts: [{name: seed, mountPath: /seed}]
  containers:
  - name: provisioner
    env: [{name: DEBUG, value: "1"}, {name: HOME, value: /root}]
    resources: {limits: {memory: 64Mi}, requests: {memory: 16Mi}}
    volumeMounts: [{name: seed, mountPath: /seed}]
  - name: notify
    image: localhost/notify:v1
    securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
  volumes: [{name: seed, configMap: {name: seed}}]
`,
}

func TestGoldenJobOfEveryKey(t *testing.T) {
	cfg := fixture.Config(t, "Retain", everyKey)
	if faults := jobs.Check(cfg, nil); len(faults) > 0 {
		t.Fatal(faults.ToAggregate())
	}
	c := fixture.Claim(func(c *corev1.PersistentVolumeClaim) {
		c.Annotations["volume.kubernetes.io/selected-node"] = "node-1"
		c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	})
	fixture.Golden(t, "job-every-key", fixture.Build(t, fixture.Provision(cfg, c)))
}

func TestGoldenJobThatDeletes(t *testing.T) {
	cfg := fixture.Config(t, "Delete", map[string]string{"run-on": "selected-node"})
	pv := fixture.PV(t)
	fixture.Golden(t, "job-delete", fixture.Build(t, jobs.Plan{
		Provisioner: contract.ProvisionerName,
		Config:      cfg, Verb: contract.Delete, Request: jobs.RequestOf(pv, cfg), PV: pv, Number: 2, Attempt: 2, After: 1,
	}))
}

func TestGoldenJobThatExpands(t *testing.T) {
	cfg := fixture.Config(t, "Delete", map[string]string{"run-on": "selected-node", "verbs": "provision,delete,expand"})
	pv := fixture.PV(t)
	request := jobs.RequestOf(pv, cfg)
	request.Size = 5 << 30
	fixture.Golden(t, "job-expand", fixture.Build(t, jobs.Plan{
		Provisioner: contract.ProvisionerName,
		Config:      cfg, Verb: contract.Expand, Request: request, PV: pv, Number: 1, Attempt: 1, Hash: jobs.SizeHash(resource.MustParse("5Gi")),
	}))
}

func TestGoldenJobThatUndoes(t *testing.T) {
	made := fixture.Build(t, fixture.Provision(fixture.Config(t, "Delete", nil), fixture.Claim()))
	request, pv, err := runs.ReadRequest(made.Spec.Template.Annotations, fixture.UID)
	if err != nil {
		t.Fatal(err)
	}
	request.Undo = true
	fixture.Golden(t, "job-undo", fixture.Build(t, jobs.Plan{
		Provisioner: contract.ProvisionerName,
		Config:      fixture.Config(t, "Delete", nil), Verb: contract.Delete, Request: request, PV: pv, Number: 1, Attempt: 1, After: 1,
	}))
}

// Two claims whose volumes one script deletes, both at a time.
func TestGoldenJobOfAScript(t *testing.T) {
	cfg := fixture.Config(t, "Delete", map[string]string{"script": "#!/bin/bash\n\"$1\"\n"})
	pv := fixture.PV(t)
	plan := jobs.Plan{
		Provisioner: contract.ProvisionerName,
		Config:      cfg, Verb: contract.Delete, Request: jobs.RequestOf(pv, cfg), PV: pv, Number: 1, Attempt: 1, After: 1,
	}
	other := plan
	other.Request.UID = "7f0c3b1e-2d4a-4c8e-9a57-0b1c2d3e4f50"
	plan.With, plan.Parallel = []jobs.Plan{other}, cfg.AtOnceOf(2)
	fixture.Golden(t, "job-script", fixture.Build(t, plan))
}
