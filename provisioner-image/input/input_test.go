package input_test

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

const (
	uid    = "8d5a6f3c-1f0e-4c11-9a55-0d8f6a3c1b2e"
	config = "[Global]\ncinder-endpoint=http://192.0.2.1:8776/v3\ntenant-name=admin\n"
)

// methods are the storage's ways to export a volume.
var methods = []volume.Method{"auto", "attachments", "reserve"}

// sources returns the sources of a good task. edit may spoil them.
func sources(t *testing.T, edit func(*contract.Requests, fstest.MapFS)) input.Sources {
	t.Helper()
	requests := contract.Requests{
		Version: contract.Version, Verb: contract.Provision,
		Items: []contract.Request{{
			UID: uid, PVName: contract.PVName(uid), Namespace: "shop", Name: "data", Class: "silver", Size: 1<<30 + 1,
			Properties: map[string]string{"type": "fast", "availability": "nova", "fsType": "xfs", "cluster": "it's one"},
		}},
	}
	files := fstest.MapFS{
		"pv.json":           {Data: []byte(`{"metadata":{"name":"pvc-` + uid + `"}}`)},
		"secret/cloud.conf": {Data: []byte(config)},
	}
	if edit != nil {
		edit(&requests, files)
	}
	if files["request.json"] == nil {
		text, err := requests.Encode()
		if err != nil {
			t.Fatal(err)
		}
		files["request.json"] = &fstest.MapFile{Data: []byte(text)}
	}
	return input.Sources{Verb: contract.Provision, Dir: files, Namespace: "flex-provisioner", Methods: methods}
}

// read reads the one task of a run.
func read(in input.Sources) (input.Task, error) {
	tasks, err := input.Read(in)
	if err != nil || len(tasks) != 1 {
		return input.Task{}, err
	}
	return tasks[0], tasks[0].Fault
}

// A later dispatcher may add fields to the request.
func TestTheRequestOfALaterReleaseIsRead(t *testing.T) {
	later := func(requests *contract.Requests, files fstest.MapFS) {
		text, err := requests.Encode()
		if err != nil {
			t.Fatal(err)
		}
		text = strings.Replace(text, `"uid":`, `"tier":{"name":"hot"},"uid":`, 1)
		files["request.json"] = &fstest.MapFile{Data: []byte(strings.Replace(text, `"verb":`, `"sentBy":["later"],"verb":`, 1))}
	}
	task, err := read(sources(t, later))
	if err != nil || task.Request.UID != uid {
		t.Errorf("%+v: %v", task, err)
	}
}

// A later contract may mean something else by the same names, so nothing is created.
func TestARequestOfALaterContractIsRefused(t *testing.T) {
	_, err := input.Read(sources(t, func(requests *contract.Requests, _ fstest.MapFS) { requests.Version = "flex-provisioner.io/v2" }))
	var fault *input.Error
	if !errors.As(err, &fault) || fault.Code != contract.ExitUsage || !strings.Contains(err.Error(), `this image supports "flex-provisioner.io/v1"`) {
		t.Errorf("got %v", err)
	}
}

func TestReadReturnsTheTask(t *testing.T) {
	task, err := read(sources(t, nil))
	if err != nil {
		t.Fatal(err)
	}
	want := volume.Spec{
		UID: uid, Name: "pvc-" + uid, SizeGiB: 2, Type: "fast", Zone: "nova", Zones: []string{"nova"},
		Metadata: map[string]string{
			"flex-provisioner.io/claim-uid":       uid,
			"flex-provisioner.io/claim-namespace": "shop",
			"flex-provisioner.io/claim-name":      "data",
			"flex-provisioner.io/pv-name":         "pvc-" + uid,
			"flex-provisioner.io/storage-class":   "silver",
			"flex-provisioner.io/cluster":         "it_s one",
		},
		Cluster: "it_s one",
		Access: volume.Access{
			Method: "auto",
			Client: volume.Client{
				Initiator: input.SharedInitiator, Host: "flex-provisioner", Platform: "x86_64", OSType: "linux",
			},
		},
	}
	if diff := cmp.Diff(want, task.Volume); diff != "" {
		t.Error(diff)
	}
	if task.FSType != "xfs" || task.Initiator != input.SharedInitiator || !task.Login.IsNoauth() || task.PV.Name != "pvc-"+uid {
		t.Errorf("unexpected %+v", task)
	}
	if diff := cmp.Diff(corev1.SecretReference{Namespace: "flex-provisioner", Name: "pvc-" + uid}, task.Secret); diff != "" {
		t.Error(diff)
	}
	if volume.KeyUID != contract.AnnClaimUID {
		t.Error("the domain and the contract name the claim's UID differently")
	}
}

func TestSizeIsRoundedUpToGiB(t *testing.T) {
	for bytes, gib := range map[int64]int{1: 1, 1 << 30: 1, 1<<30 + 1: 2, 10 << 30: 10} {
		task, err := read(sources(t, func(r *contract.Requests, _ fstest.MapFS) { r.Items[0].Size = bytes }))
		if err != nil || task.Volume.SizeGiB != gib {
			t.Errorf("%d bytes are %d GiB, want %d (%v)", bytes, task.Volume.SizeGiB, gib, err)
		}
	}
}

func TestLoginIsReadFromAFileOrTheEnvironment(t *testing.T) {
	in := sources(t, func(r *contract.Requests, files fstest.MapFS) {
		r.Items[0].Properties["cloud-config"] = "other.conf"
		files["secret/other.conf"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(config, "192.0.2.1", "192.0.2.2"))}
	})
	if task, err := read(in); err != nil || task.Login.Endpoint != "http://192.0.2.2:8776/v3" {
		t.Errorf("named file: %+v, %v", task.Login, err)
	}
	in = sources(t, func(_ *contract.Requests, files fstest.MapFS) { delete(files, "secret/cloud.conf") })
	in.Env = map[string]string{"OS_CINDER_ENDPOINT": "http://192.0.2.3:8776/v3"}
	if task, err := read(in); err != nil || task.Login.Endpoint != "http://192.0.2.3:8776/v3" {
		t.Errorf("environment: %+v, %v", task.Login, err)
	}
}

func TestReadRefusesAFaultyRequest(t *testing.T) {
	tests := map[string]struct {
		edit func(*contract.Requests, fstest.MapFS)
		code int
		text string
	}{
		"no request": {
			func(_ *contract.Requests, f fstest.MapFS) { f["request.json"] = &fstest.MapFile{Data: []byte("{")} },
			contract.ExitUsage, "decode the requests",
		},
		"another verb": {
			func(r *contract.Requests, _ fstest.MapFS) { r.Verb = contract.Delete },
			contract.ExitUsage, `the verb of the argument is "provision", and that of the request is "delete"`,
		},
		"nothing asked": {
			func(r *contract.Requests, _ fstest.MapFS) { r.Items = nil },
			contract.ExitUsage, "no request is given",
		},
		"no UID": {
			func(r *contract.Requests, _ fstest.MapFS) { r.Items[0].UID = "it's" },
			contract.ExitUsage, "must be a UID",
		},
		"no PV name": {
			func(r *contract.Requests, _ fstest.MapFS) { r.Items[0].PVName = "" },
			contract.ExitUsage, "does not name a PV",
		},
		"another PV": {
			func(r *contract.Requests, _ fstest.MapFS) { r.Items[0].PVName = "pvc-x" },
			contract.ExitUsage, `the request names "pvc-x"`,
		},
		"no PV": {
			func(_ *contract.Requests, f fstest.MapFS) { delete(f, "pv.json") },
			contract.ExitUsage, "read the PV",
		},
		"properties that nobody reads": {
			func(r *contract.Requests, _ fstest.MapFS) {
				r.Items[0].Properties = map[string]string{"tpye": "fast", "fsystem": "xfs"}
			},
			contract.ExitConfig, "property \"fsystem\" is unknown; this image supports adopt,",
		},
		"no size": {
			func(r *contract.Requests, _ fstest.MapFS) { r.Items[0].Size = 0 },
			contract.ExitBadRequest, "a size of 0 bytes",
		},
		"too large": {
			func(r *contract.Requests, _ fstest.MapFS) { r.Items[0].Size = 1<<63 - 1 },
			contract.ExitBadRequest, "is not supported",
		},
		"a named cloud config that is missing": {
			func(r *contract.Requests, _ fstest.MapFS) { r.Items[0].Properties["cloud-config"] = "x" },
			contract.ExitConfig, "read x from the Secret that the config names in files-from-secret",
		},
		"no credentials": {
			func(_ *contract.Requests, f fstest.MapFS) { delete(f, "secret/cloud.conf") },
			contract.ExitConfig, "credentials from the environment",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := read(sources(t, tc.edit))
			f, ok := errors.AsType[*input.Error](err)
			if !ok || f.Code != tc.code || !strings.Contains(f.Error(), tc.text) {
				t.Errorf("error %v, want code %d and %q", err, tc.code, tc.text)
			}
		})
	}
}

// A batch's requests are read one by one, with one login. pv.json is a List.
func TestFaultOfOneRequestIsNotTheOthers(t *testing.T) {
	in := sources(t, func(r *contract.Requests, files fstest.MapFS) {
		files["pv.json"] = &fstest.MapFile{Data: []byte(`{"kind":"List","items":[{"metadata":{"name":"pvc-1"}},{"metadata":{"name":"pvc-2"}},{"metadata":{"name":"x"}}]}`)}
		first := r.Items[0]
		r.Items = nil
		for _, uid := range []string{"1", "2", "3"} {
			one := first
			one.UID, one.PVName = uid, contract.PVName(uid)
			r.Items = append(r.Items, one)
		}
		r.Items[1].Size = 0
	})
	tasks, err := input.Read(in)
	if err != nil || len(tasks) != 3 {
		t.Fatalf("%d tasks, %v", len(tasks), err)
	}
	for i, code := range []int{contract.ExitDone, contract.ExitBadRequest, contract.ExitUsage} {
		f, faulty := errors.AsType[*input.Error](tasks[i].Fault)
		if faulty != (code != contract.ExitDone) || faulty && f.Code != code || !tasks[i].Shared || !tasks[i].Login.IsNoauth() {
			t.Errorf("task %d: fault %v, want code %d; %+v", i, tasks[i].Fault, code, tasks[i])
		}
	}
	if tasks[0].PV.Name != "pvc-1" || tasks[0].Volume.UID != "1" {
		t.Errorf("the first task is %+v", tasks[0])
	}
}

// What all requests of a batch share fails each of them.
func TestFaultOfTheClassIsThatOfEveryRequest(t *testing.T) {
	for name, edit := range map[string]func(*contract.Requests, fstest.MapFS){
		"no login":       func(_ *contract.Requests, files fstest.MapFS) { delete(files, "secret/cloud.conf") },
		"not enough PVs": func(*contract.Requests, fstest.MapFS) {},
		"parallel":       func(r *contract.Requests, _ fstest.MapFS) { r.Items[0].Properties["parallel"] = "65" },
	} {
		tasks, err := input.Read(sources(t, func(r *contract.Requests, files fstest.MapFS) {
			r.Items = append(r.Items, r.Items[0])
			edit(r, files)
		}))
		if err != nil || len(tasks) != 2 || tasks[0].Fault == nil || !errors.Is(tasks[1].Fault, tasks[0].Fault) {
			t.Errorf("%s: %v, %v", name, tasks, err)
		}
	}
}

func TestParallelHasBounds(t *testing.T) {
	for text, want := range map[string]int{"": 8, "1": 1, "64": 64, "0": 0, "65": 0, "many": 0} {
		task, err := with(t, map[string]string{"parallel": text}, nil)
		if want == 0 && (err == nil || !strings.Contains(err.Error(), "from 1 to 64")) || want > 0 && (err != nil || task.Parallel != want) {
			t.Errorf("%q: %d, %v", text, task.Parallel, err)
		}
	}
}
