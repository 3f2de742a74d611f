package jobs_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

func TestRule14AJobIsNamedSoThatASecondLeaderCollides(t *testing.T) {
	if got := jobs.Name(contract.Provision, uid, 3); got != "provision-"+uid+"-3" {
		t.Errorf("got %s", got)
	}
}

func TestTheContractWinsOverThePodTemplate(t *testing.T) {
	cfg := configOf(t, "Delete", map[string]string{"env-from-secret": "login", "pod-template": `
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
	job := build(t, provision(cfg, claim()))
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
	if _, _, err := jobs.Recorded(pod.Annotations, uid); err != nil {
		t.Errorf("the request was replaced: %v", err)
	}
	for _, labels := range []map[string]string{pod.Labels, job.Labels} {
		if labels[contract.LabelClaimUID] != uid || labels[contract.LabelManagedBy] != contract.ManagedBy {
			t.Errorf("labels %v", labels)
		}
	}
}

// hostile is text that a claim's owner can choose.
const hostile = "$(OS_PASSWORD) $$ ${HOME} `reboot` \"; --\n{{.}}\x00 \u202e'"

func TestClaimTextNeverBecomesAnythingButData(t *testing.T) {
	cfg := configOf(t, "Delete", map[string]string{"env-from-secret": "login", "run-on": "selected-node"})
	plain := provision(cfg, claim())
	evil := provision(cfg, claim())
	r := &evil.Request
	r.Name, r.Namespace, r.Username, r.Group, r.VolumeMode, r.SelectedZone = hostile, hostile, hostile, hostile, hostile, hostile
	r.AccessModes, r.MountOptions = []string{hostile}, []string{hostile}
	r.Labels, r.Annotations = map[string]string{hostile: hostile}, map[string]string{hostile: hostile}
	r.Properties = map[string]string{"use-nfs-server": hostile, "fsType": hostile}
	evil.PV = jobs.Skeleton(*r, cfg, contract.ProvisionerName)
	a, b := build(t, plain), build(t, evil)

	got := variables(t, provisioner(t, b))
	for _, name := range []string{
		"FLEX_CLAIM_NAME", "FLEX_CLAIM_NAMESPACE", "FLEX_USERNAME", "FLEX_GROUP", "FLEX_VOLUME_MODE", "FLEX_SELECTED_ZONE",
		"FLEX_ACCESS_MODES", "FLEX_MOUNT_OPTIONS", "FLEX_USE_NFS_SERVER", "FLEX_FSTYPE",
	} {
		if got[name] != hostile {
			t.Errorf("%s arrives as %q", name, got[name])
		}
	}
	request, pv, err := jobs.Recorded(b.Spec.Template.Annotations, uid)
	if err != nil || !reflect.DeepEqual(request, *r) || pv.Spec.ClaimRef.Name != hostile {
		t.Errorf("request.json and pv.json: %v, %+v", err, request)
	}
	// Beside the variables' values, the two files and the name of a lane the Jobs are one.
	if diff := cmp.Diff(dataless(a), dataless(b)); diff != "" {
		t.Errorf("claim text reached more than data (-plain +hostile):\n%s", diff)
	}
}

func dataless(job *batchv1.Job) *batchv1.Job {
	pod := &job.Spec.Template
	delete(job.Annotations, contract.AnnNamespace)
	delete(pod.Annotations, contract.AnnRequest)
	delete(pod.Annotations, contract.AnnPV)
	for i := range pod.Spec.Containers[0].Env {
		pod.Spec.Containers[0].Env[i].Value = ""
	}
	return job
}

func TestDollarsInValuesAreNeverExpanded(t *testing.T) {
	for _, value := range []string{"$(FLEX_SIZE)", "$$(FLEX_SIZE)", "$", "a$", "$$$(HOME)$", "$(", "$()", "100$ (one)"} {
		p := provision(configOf(t, "Delete", nil), claim())
		p.Request.Username = value
		c := provisioner(t, build(t, p))
		if got := variables(t, c)["FLEX_USERNAME"]; got != value {
			t.Errorf("%q arrives as %q", value, got)
		}
	}
}

func TestEveryAPIPropertyAndEveryPropertyArrives(t *testing.T) {
	p := provision(configOf(t, "Delete", map[string]string{"service-token": "s3cret", "zone": "west"}), claim())
	got := variables(t, provisioner(t, build(t, p)))
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

func TestARequestAlwaysFitsIntoAPodsAnnotations(t *testing.T) {
	c := claim(annotated("a", strings.Repeat("x", 200<<10)))
	pod := build(t, provision(configOf(t, "Delete", nil), c)).Spec.Template
	size := 0
	for key, value := range pod.Annotations {
		size += len(key) + len(value)
	}
	if size > 32<<10 {
		t.Errorf("%d bytes of annotations", size)
	}
}

// A disruption fails the Job instead of being ignored, which ARCHITECTURE.md argues.
func TestRule04AJobRunsOnePodOnce(t *testing.T) {
	job := build(t, provision(configOf(t, "Delete", map[string]string{"pod-template": "spec: {terminationGracePeriodSeconds: 5}"}), claim()))
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

func TestRule04TheTimeoutIsOnTheJobAndOnThePod(t *testing.T) {
	job := build(t, provision(configOf(t, "Delete", map[string]string{"timeout": "1m30.9s"}), claim()))
	if *job.Spec.ActiveDeadlineSeconds != 150 || *job.Spec.Template.Spec.ActiveDeadlineSeconds != 90 {
		t.Errorf("%d and %d seconds", *job.Spec.ActiveDeadlineSeconds, *job.Spec.Template.Spec.ActiveDeadlineSeconds)
	}
	if job.Spec.TTLSecondsAfterFinished != nil || *job.Spec.BackoffLimit != 0 {
		t.Error("a Job may neither expire before it was recorded nor retry by itself")
	}
}

func TestThePVsBookkeepingStaysOut(t *testing.T) {
	cfg := configOf(t, "Delete", nil)
	pv := realPV(t)
	job := build(t, jobs.Plan{Config: cfg, Verb: contract.Delete, Request: jobs.RequestOf(pv, cfg), PV: pv, Number: 1, Attempt: 1})
	if strings.Contains(job.Spec.Template.Annotations[contract.AnnPV], "managedFields") {
		t.Error("managed fields are in pv.json")
	}
	if pv.ManagedFields == nil {
		t.Error("the PV itself was changed: it lies in a shared cache")
	}
	if job.Annotations[contract.AnnVolume] != string(pv.UID) {
		t.Errorf("the Job is for the volume %q", job.Annotations[contract.AnnVolume])
	}
}

func TestRecordedReadsBackWhatWasBuilt(t *testing.T) {
	p := provision(configOf(t, "Delete", nil), claim())
	request, pv, err := jobs.Recorded(build(t, p).Spec.Template.Annotations, uid)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(p.Request, request); diff != "" {
		t.Errorf("the request (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(p.PV, pv); diff != "" {
		t.Errorf("the PV (-want +got):\n%s", diff)
	}
	ours := `{"uid":"` + uid + `"}`
	for name, broken := range map[string]map[string]string{
		"nothing":                          {},
		"no PV":                            requestFile("v1", "delete", ours, ""),
		"another claim's":                  requestFile("v1", "delete", `{"uid":"other"}`, "{}"),
		"two requests and one PV":          requestFile("v1", "delete", ours+`,{"uid":"other"}`, "{}"),
		"two requests in a list of one PV": requestFile("v1", "delete", ours+`,{"uid":"other"}`, `{"kind":"List","items":[{}]}`),
		"a list without a PV":              requestFile("v1", "delete", ours+`,{"uid":"other"}`, `{"kind":"List","items":[null,{}]}`),
		"another version":                  requestFile("v2", "delete", ours, "{}"),
		"another verb":                     requestFile("v1", "x", ours, "{}"),
	} {
		if _, _, err := jobs.Recorded(broken, uid); err == nil {
			t.Errorf("%s was read without an error", name)
		}
	}
}

// requestFile are the annotations of a pod with these requests.
func requestFile(version, verb, requests, pv string) map[string]string {
	return map[string]string{
		contract.AnnRequest: `{"version":"flex-provisioner.io/` + version + `","verb":"` + verb + `","requests":[` + requests + `]}`,
		contract.AnnPV:      pv,
	}
}

func TestRecordOfReadsBackWhatBuildWrote(t *testing.T) {
	cfg := configOf(t, "Delete", nil)
	c := claim(annotated("volume.kubernetes.io/selected-node", "node-1"))
	p := provision(cfg, c)
	p.Number, p.Attempt = 12, 7
	want := jobs.Record{
		Verb: contract.Provision, UIDs: []string{uid}, Number: 12, Attempt: 7, Hash: p.Hash, Revision: cfg.Source.Revision(),
		Node: "node-1", Clean: true, Held: true,
	}
	if diff := cmp.Diff(want, jobs.RecordOf(build(t, p), uid)); diff != "" {
		t.Errorf("provision (-want +got):\n%s", diff)
	}
	pv := realPV(t)
	pv.UID = types.UID("the-pv")
	d := build(t, jobs.Plan{Config: cfg, Verb: contract.Delete, Request: jobs.RequestOf(pv, cfg), PV: pv, Number: 3, Attempt: 2, After: 12, Anywhere: true})
	want = jobs.Record{
		Verb: contract.Delete, UIDs: []string{uid}, Number: 3, Attempt: 2, After: 12, Revision: cfg.Source.Revision(),
		Node: "node-1", Anywhere: true, Volume: "the-pv", Held: true,
	}
	if diff := cmp.Diff(want, jobs.RecordOf(d, uid)); diff != "" {
		t.Errorf("delete (-want +got):\n%s", diff)
	}
	d.Finalizers = nil
	if jobs.RecordOf(d, uid).Held {
		t.Error("a released Job is no record any more")
	}
}

func TestADamagedRecordIsReadAsFarAsItGoes(t *testing.T) {
	job := &batchv1.Job{}
	job.Name = "no-number-here"
	job.Annotations = map[string]string{contract.AnnAttempt: "many", contract.AnnOutcome: "{", contract.AnnUIDs: "a,b"}
	got := jobs.RecordOf(job, uid)
	if got.Number != 0 || got.Attempt != 0 || got.Settled != nil || len(got.UIDs) != 2 {
		t.Errorf("got %+v", got)
	}
}
