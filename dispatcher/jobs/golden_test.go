package jobs_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

func TestGoldenJobOfTheLeastConfig(t *testing.T) {
	golden(t, "job-least", build(t, provision(configOf(t, "Delete", nil), claim())))
}

// everyKey is a config with every key set.
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
	cfg := configOf(t, "Retain", everyKey)
	if faults := jobs.Check(cfg, nil); len(faults) > 0 {
		t.Fatal(faults.ToAggregate())
	}
	c := claim(func(c *corev1.PersistentVolumeClaim) {
		c.Annotations["volume.kubernetes.io/selected-node"] = "node-1"
		c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
	})
	golden(t, "job-every-key", build(t, provision(cfg, c)))
}

// realPV is what the image made of the skeleton, as the API server shows it later.
func realPV(t *testing.T) *corev1.PersistentVolume {
	t.Helper()
	p := provision(configOf(t, "Delete", nil), claim())
	pv := p.PV
	pv.UID, pv.ResourceVersion = "0d4c9a52-77a1-4f0e-8f4e-1b2c3d4e5f60", "71"
	pv.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubectl"}}
	pv.Spec.NFS = &corev1.NFSVolumeSource{Server: "10.10.2.4", Path: "/gold"}
	pv.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
		{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{"node-1"}}}},
	}}}
	return pv
}

func TestGoldenJobThatDeletes(t *testing.T) {
	cfg := configOf(t, "Delete", map[string]string{"run-on": "selected-node"})
	pv := realPV(t)
	golden(t, "job-delete", build(t, jobs.Plan{
		Config: cfg, Verb: contract.Delete, Request: jobs.RequestOf(pv, cfg), PV: pv, Number: 2, Attempt: 2, After: 1,
	}))
}

func TestGoldenJobThatExpands(t *testing.T) {
	cfg := configOf(t, "Delete", map[string]string{"run-on": "selected-node", "verbs": "provision,delete,expand"})
	pv := realPV(t)
	request := jobs.RequestOf(pv, cfg)
	request.Size = 5 << 30
	golden(t, "job-expand", build(t, jobs.Plan{
		Config: cfg, Verb: contract.Expand, Request: request, PV: pv, Number: 1, Attempt: 1, Hash: jobs.SizeHash(resource.MustParse("5Gi")),
	}))
}

func TestGoldenJobThatUndoes(t *testing.T) {
	made := build(t, provision(configOf(t, "Delete", nil), claim()))
	request, pv, err := jobs.Recorded(made.Spec.Template.Annotations, uid)
	if err != nil {
		t.Fatal(err)
	}
	request.Undo = true
	golden(t, "job-undo", build(t, jobs.Plan{
		Config: configOf(t, "Delete", nil), Verb: contract.Delete, Request: request, PV: pv, Number: 1, Attempt: 1, After: 1,
	}))
}

func TestGoldenSkeletons(t *testing.T) {
	for name, test := range map[string]struct {
		reclaim string
		change  func(*corev1.PersistentVolumeClaim)
	}{
		"pv-delete": {"Delete", func(*corev1.PersistentVolumeClaim) {}},
		"pv-retain-block-shared": {"Retain", func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
			c.Spec.VolumeAttributesClassName = new("fast")
			c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany, corev1.ReadOnlyMany}
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("1.5G")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := configOf(t, test.reclaim, nil)
			sc := class()
			sc.MountOptions = []string{"hard", "nfsvers=4.1"}
			request := jobs.Request(claim(test.change), sc, cfg, "")
			pv := jobs.Skeleton(request, cfg, contract.ProvisionerName)
			golden(t, name, pv)
			if fault := jobs.Proof(pv, uid); fault != "" {
				t.Errorf("the skeleton would be no proof: %s", fault)
			}
		})
	}
}
