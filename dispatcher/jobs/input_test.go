package jobs_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// cinder returns a config that cinder-provisioner accepts.
func cinder(t *testing.T) config.Config {
	t.Helper()
	cfg, faults := config.Parse(config.Source{
		Namespace: "flex-provisioner", Name: "cinder", Class: "gold", Reclaim: "Delete", Binding: "Immediate",
		Data: map[string]string{
			"image": "localhost/cinder-provisioner:dev", "verbs": "provision,delete", "service-account-name": "cinder-provisioner",
			"files-from-secret": "cinder",
		},
		Parameters: map[string]string{"type": "ssd", "availability": "nova", "fsType": "xfs"},
	}, config.Dispatcher{Provisioner: contract.ProvisionerName})
	if len(faults) > 0 {
		t.Fatal(faults.ToAggregate())
	}
	return cfg
}

// sources returns what the image finds in the pod of a Job: its argument, its variables and its
// files.
func sources(t *testing.T, job *batchv1.Job) input.Sources {
	t.Helper()
	c := provisioner(t, job)
	dir := fstest.MapFS{"secret/cloud.conf": {Data: []byte("[Global]\ncinder-endpoint=http://10.0.0.5:8776/v3\ntenant-name=admin\n")}}
	for _, v := range job.Spec.Template.Spec.Volumes {
		if v.DownwardAPI == nil {
			continue
		}
		for _, item := range v.DownwardAPI.Items {
			key := strings.TrimSuffix(strings.TrimPrefix(item.FieldRef.FieldPath, "metadata.annotations['"), "']")
			dir[item.Path] = &fstest.MapFile{Data: []byte(job.Spec.Template.Annotations[key])}
		}
	}
	return input.Sources{
		Verb: contract.Verb(c.Args[len(c.Args)-1]), Dir: dir, Env: variables(t, c), Namespace: job.Namespace,
		Methods: []volume.Method{"auto"},
	}
}

func readAll(t *testing.T, job *batchv1.Job) []input.Task {
	t.Helper()
	tasks, err := input.Read(sources(t, job))
	if err != nil {
		t.Fatal(err)
	}
	for _, task := range tasks {
		if task.Fault != nil {
			t.Fatal(task.Fault)
		}
	}
	return tasks
}

func read(t *testing.T, job *batchv1.Job) input.Task {
	t.Helper()
	tasks := readAll(t, job)
	if len(tasks) != 1 {
		t.Fatalf("%d tasks", len(tasks))
	}
	return tasks[0]
}

// Each request of a batch has its own PV, and what the class and the login say.
func TestImageReadsTheBatchThatJobsBuilds(t *testing.T) {
	plan := batchOf(cinder(t), "u1", "u2", "u3")
	for i, got := range readAll(t, fixture.Build(t, plan)) {
		want := append([]jobs.Plan{plan}, plan.With...)[i]
		if diff := cmp.Diff(want.Request, got.Request) + cmp.Diff(want.PV, got.PV); diff != "" {
			t.Errorf("request %d (-built +read):\n%s", i, diff)
		}
		if got.Volume.UID != want.Request.UID || got.Secret.Name != want.PV.Name || !got.Shared || got.Parallel != 8 || !got.Login.IsNoauth() {
			t.Errorf("read %+v", got)
		}
	}
}

func TestImageReadsWhatJobsBuilds(t *testing.T) {
	cfg := cinder(t)
	p := fixture.Provision(cfg, fixture.Claim(sized("1500Mi")))
	got := read(t, fixture.Build(t, p))
	if diff := cmp.Diff(p.Request, got.Request); diff != "" {
		t.Errorf("the request (-built +read):\n%s", diff)
	}
	if diff := cmp.Diff(p.PV, got.PV); diff != "" {
		t.Errorf("the PV (-built +read):\n%s", diff)
	}
	if got.Verb != contract.Provision || got.Volume.UID != fixture.UID || got.Volume.SizeGiB != 2 || got.Volume.Type != "ssd" || got.FSType != "xfs" {
		t.Errorf("read %+v", got)
	}
	if got.Secret.Namespace != "flex-provisioner" || got.Secret.Name != "pvc-"+fixture.UID {
		t.Errorf("the Secret would go to %+v", got.Secret)
	}
}

func TestImageReadsWhatJobsBuildsToDeleteAndToUndo(t *testing.T) {
	cfg := cinder(t)
	pv := fixture.PV(t)
	deletes := read(t, fixture.Build(t, jobs.Plan{Config: cfg, Verb: contract.Delete, Request: jobs.RequestOf(pv, cfg), PV: pv, Number: 1, Attempt: 1}))
	if deletes.Verb != contract.Delete || deletes.Request.UID != fixture.UID || deletes.Request.Undo || deletes.PV.Spec.NFS == nil {
		t.Errorf("read %+v", deletes)
	}
	made := fixture.Build(t, fixture.Provision(cfg, fixture.Claim()))
	request, skeleton, err := runs.ReadRequest(made.Spec.Template.Annotations, fixture.UID)
	if err != nil {
		t.Fatal(err)
	}
	request.Undo = true
	undoes := read(t, fixture.Build(t, jobs.Plan{Config: cfg, Verb: contract.Delete, Request: request, PV: skeleton, Number: 1, Attempt: 1, After: 1}))
	if undoes.Verb != contract.Delete || !undoes.Request.Undo || undoes.Volume.UID != fixture.UID {
		t.Errorf("read %+v", undoes)
	}
}
