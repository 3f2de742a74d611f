package jobs_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

func TestOneRunPerClaimJobNamesOfTwoLeadersCollide(t *testing.T) {
	if got := jobs.Name(contract.Provision, fixture.UID, 3); got != "provision-"+fixture.UID+"-3" {
		t.Errorf("got %s", got)
	}
}

func TestContractWinsOverThePodTemplate(t *testing.T) {
	cfg := fixture.Config(t, "Delete", map[string]string{"env-from-secret": "login", "pod-template": `
metadata:
  labels: {app.kubernetes.io/managed-by: me}
  annotations: {flex-provisioner.io/request: forged, flex-provisioner.io/pv: forged}
spec:
  activeDeadlineSeconds: 86400
  containers:
  - name: provisioner
    image: localhost/forged:v1
    imagePullPolicy: Always
    env: [{name: HOME, value: /root}]
    envFrom: [{configMapRef: {name: forged}}]
    volumeMounts: [{name: mine, mountPath: /etc/flex}, {name: mine, mountPath: /tmp}]
  volumes: [{name: mine, emptyDir: {}}]
`})
	job := fixture.Build(t, fixture.Provision(cfg, fixture.Claim()))
	c, pod := provisioner(t, job), job.Spec.Template
	if c.Image != "localhost/gold:v1" || len(c.Args) != 1 || c.Args[0] != "provision" {
		t.Errorf("image %s, args %v", c.Image, c.Args)
	}
	if variables(t, c)["HOME"] != "/tmp" || len(c.EnvFrom) != 1 || c.EnvFrom[0].SecretRef == nil {
		t.Errorf("HOME %s, envFrom %v", variables(t, c)["HOME"], c.EnvFrom)
	}
	for _, m := range c.VolumeMounts {
		if want := map[string]string{"/etc/flex": "flex", "/tmp": "tmp"}[m.MountPath]; want != "" && m.Name != want {
			t.Errorf("%s is mounted from %s", m.MountPath, m.Name)
		}
	}
	if pod.Spec.ServiceAccountName != "gold" || *pod.Spec.ActiveDeadlineSeconds != 600 || pod.Spec.RestartPolicy != corev1.RestartPolicyNever {
		t.Errorf("the pod: %s, %d s, %s", pod.Spec.ServiceAccountName, *pod.Spec.ActiveDeadlineSeconds, pod.Spec.RestartPolicy)
	}
	if _, _, err := runs.ReadRequest(pod.Annotations, fixture.UID); err != nil {
		t.Errorf("the request was replaced: %v", err)
	}
	for _, labels := range []map[string]string{pod.Labels, job.Labels} {
		if labels[contract.LabelClaimUID] != fixture.UID || labels[config.LabelManagedBy] != config.ManagedBy {
			t.Errorf("labels %v", labels)
		}
	}
}

// hostile is text that a claim's owner can choose.
const hostile = "$(OS_PASSWORD) $$ ${HOME} `true` \"; --\n{{.}}\x00 \u202e'"

func TestClaimTextNeverBecomesAnythingButData(t *testing.T) {
	cfg := fixture.Config(t, "Delete", map[string]string{"env-from-secret": "login", "run-on": "selected-node"})
	plain := fixture.Provision(cfg, fixture.Claim())
	evil := fixture.Provision(cfg, fixture.Claim())
	r := &evil.Request
	r.Name, r.Namespace, r.Username, r.Group, r.VolumeMode, r.SelectedZone = hostile, hostile, hostile, hostile, hostile, hostile
	r.AccessModes, r.MountOptions = []string{hostile}, []string{hostile}
	r.Labels, r.Annotations = map[string]string{hostile: hostile}, map[string]string{hostile: hostile}
	r.Properties = map[string]string{"use-nfs-server": hostile, "fsType": hostile}
	evil.PV = pvs.Skeleton(*r, cfg, contract.ProvisionerName)
	a, b := fixture.Build(t, plain), fixture.Build(t, evil)

	got := variables(t, provisioner(t, b))
	for _, name := range []string{
		"FLEX_CLAIM_NAME", "FLEX_CLAIM_NAMESPACE", "FLEX_USERNAME", "FLEX_GROUP", "FLEX_VOLUME_MODE", "FLEX_SELECTED_ZONE",
		"FLEX_ACCESS_MODES", "FLEX_MOUNT_OPTIONS", "FLEX_USE_NFS_SERVER", "FLEX_FSTYPE",
	} {
		if got[name] != hostile {
			t.Errorf("%s arrives as %q", name, got[name])
		}
	}
	request, pv, err := runs.ReadRequest(b.Spec.Template.Annotations, fixture.UID)
	if err != nil || !reflect.DeepEqual(request, *r) || pv.Spec.ClaimRef.Name != hostile {
		t.Errorf("request.json and pv.json: %v, %+v", err, request)
	}
	// The Jobs differ only in the variables' values, the two files and the record.
	if diff := cmp.Diff(dataless(a), dataless(b)); diff != "" {
		t.Errorf("claim text reached more than data (-plain +hostile):\n%s", diff)
	}
}

func dataless(job *batchv1.Job) *batchv1.Job {
	pod := &job.Spec.Template
	delete(job.Annotations, jobs.AnnRecord)
	delete(pod.Annotations, jobs.AnnRequest)
	delete(pod.Annotations, jobs.AnnPV)
	for i := range pod.Spec.Containers[0].Env {
		pod.Spec.Containers[0].Env[i].Value = ""
	}
	return job
}

func TestDollarsInValuesAreNeverExpanded(t *testing.T) {
	for _, value := range []string{"$(FLEX_SIZE)", "$$(FLEX_SIZE)", "$", "a$", "$$$(HOME)$", "$(", "$()", "100$ (one)"} {
		p := fixture.Provision(fixture.Config(t, "Delete", nil), fixture.Claim())
		p.Request.Username = value
		c := provisioner(t, fixture.Build(t, p))
		if got := variables(t, c)["FLEX_USERNAME"]; got != value {
			t.Errorf("%q arrives as %q", value, got)
		}
	}
}

func TestEveryAPIPropertyAndEveryPropertyArrives(t *testing.T) {
	p := fixture.Provision(fixture.Config(t, "Delete", map[string]string{"service-token": "s3cret", "zone": "west"}), fixture.Claim())
	p.Request.ListedVolume = "v1" // of an audit's delete only
	got := variables(t, provisioner(t, fixture.Build(t, p)))
	for _, name := range contract.APIProperties() {
		if _, found := got[contract.EnvName(name)]; !found {
			t.Errorf("%s is missing", contract.EnvName(name))
		}
		delete(got, contract.EnvName(name))
	}
	want := map[string]string{
		"HOME": "/tmp", "FLEX_SERVICE_TOKEN": "s3cret", "FLEX_ZONE": "west", "FLEX_USE_NFS_SERVER": "10.10.2.4", "FLEX_FSTYPE": "ext4",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("beside the API properties (-want +got):\n%s", diff)
	}
}

func TestRequestAlwaysFitsIntoAPodsAnnotations(t *testing.T) {
	c := fixture.Claim(fixture.Annotated("a", strings.Repeat("x", 200<<10)))
	pod := fixture.Build(t, fixture.Provision(fixture.Config(t, "Delete", nil), c)).Spec.Template
	size := 0
	for key, value := range pod.Annotations {
		size += len(key) + len(value)
	}
	if size > 32<<10 {
		t.Errorf("%d bytes of annotations", size)
	}
}

// A disruption fails the Job instead of being ignored. ARCHITECTURE.md says why.
func TestOnePodPerJobRunsOnce(t *testing.T) {
	job := fixture.Build(t, fixture.Provision(fixture.Config(t, "Delete", map[string]string{"pod-template": "spec: {terminationGracePeriodSeconds: 5}"}), fixture.Claim()))
	if got := *job.Spec.BackoffLimit; got != 0 {
		t.Errorf("it is retried by others, %d times", got)
	}
	if got := job.Spec.Template.Spec.RestartPolicy; got != corev1.RestartPolicyNever {
		t.Errorf("its container is started again: %s", got)
	}
	if got := job.Spec.PodReplacementPolicy; got == nil || *got != batchv1.Failed {
		t.Errorf("a pod that still terminates is replaced: %v", got)
	}
	policy := job.Spec.PodFailurePolicy
	if policy == nil || len(policy.Rules) != 1 || policy.Rules[0].Action != batchv1.PodFailurePolicyActionFailJob {
		t.Fatalf("a disruption does not end it: %+v", policy)
	}
	if on := policy.Rules[0].OnPodConditions; len(on) != 1 || on[0].Type != corev1.DisruptionTarget || on[0].Status != corev1.ConditionTrue {
		t.Errorf("ended by %+v", on)
	}
}

// Whether it has one is not left to its ServiceAccount.
func TestOnlyAContainerThatWritesThePVHasAToken(t *testing.T) {
	for writer, want := range map[config.Writer]*bool{config.ContainerWrites: new(true), config.DispatcherWrites: new(false)} {
		job := fixture.Build(t, fixture.Provision(fixture.Config(t, "Delete", map[string]string{"write-pv": string(writer)}), fixture.Claim()))
		if got := job.Spec.Template.Spec.AutomountServiceAccountToken; !ptr.Equal(got, want) {
			t.Errorf("%s: %v, want %v", writer, got, want)
		}
	}
}

// The variables of a Service named flex-filer would be properties of every run.
func TestAPodHasNoVariablesOfServices(t *testing.T) {
	for template, want := range map[string]bool{
		"":                                   false,
		"{spec: {enableServiceLinks: true}}": true,
	} {
		keys := map[string]string{}
		if template != "" {
			keys["pod-template"] = template
		}
		cfg := fixture.Config(t, "Delete", keys)
		job := fixture.Build(t, fixture.Provision(cfg, fixture.Claim()))
		if got := job.Spec.Template.Spec.EnableServiceLinks; got == nil || *got != want {
			t.Errorf("with the template %q: %v, want %v", template, got, want)
		}
	}
}

func TestTimeoutIsOnTheJobAndOnThePod(t *testing.T) {
	job := fixture.Build(t, fixture.Provision(fixture.Config(t, "Delete", map[string]string{"timeout": "1m30.9s"}), fixture.Claim()))
	if *job.Spec.ActiveDeadlineSeconds != 690 || *job.Spec.Template.Spec.ActiveDeadlineSeconds != 90 {
		t.Errorf("%d and %d seconds", *job.Spec.ActiveDeadlineSeconds, *job.Spec.Template.Spec.ActiveDeadlineSeconds)
	}
	if job.Spec.TTLSecondsAfterFinished != nil || *job.Spec.BackoffLimit != 0 {
		t.Error("a Job may neither expire before it was recorded nor retry by itself")
	}
}

func TestManagedFieldsOfThePVAreRemoved(t *testing.T) {
	cfg := fixture.Config(t, "Delete", nil)
	pv := fixture.PV(t)
	job := fixture.Build(t, jobs.Plan{Config: cfg, Verb: contract.Delete, Request: jobs.RequestOf(pv, cfg), PV: pv, Number: 1, Attempt: 1})
	if strings.Contains(job.Spec.Template.Annotations[jobs.AnnPV], "managedFields") {
		t.Error("managed fields are in pv.json")
	}
	if pv.ManagedFields == nil {
		t.Error("the PV itself was changed: it lies in a shared cache")
	}
	if record := jobs.RecordOf(job, fixture.UID); record.Volume != string(pv.UID) {
		t.Errorf("the Job is for the volume %q", record.Volume)
	}
}
