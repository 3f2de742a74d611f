package input_test

import (
	"testing"
	"testing/fstest"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
)

// A task that is read without a fault is about one claim: its PV, its volume and its Secret bear
// the claim's name or UID, and the UID is no syntax of any storage.
func FuzzRequestFile(f *testing.F) {
	f.Add(`{"version":"flex-provisioner.io/v1","verb":"provision","requests":[{"uid":"u1","pvName":"pvc-u1","size":1,"properties":{"fsType":"xfs","type":"fast","parallel":"8"}}]}`,
		`{"metadata":{"name":"pvc-u1"}}`)
	f.Add(`{"version":"flex-provisioner.io/v1","verb":"provision","requests":[{"uid":"u1","pvName":"pvc-u1","source":{"claimName":"x"},"properties":{"smartclone":"true"}},{"uid":"u2"}]}`,
		`{"items":[{"metadata":{"name":"pvc-u1"}},{}]}`)
	f.Add(`{"version":"flex-provisioner.io/v1","verb":"provision","requests":[{"uid":"../x","size":-1,"allowedTopologies":[{"topology.kubernetes.io/zone":["a"]}],"selectedZone":"b"}]}`, `[]`)
	f.Fuzz(func(t *testing.T, request, pv string) {
		in := sources(t, func(_ *contract.Requests, files fstest.MapFS) {
			files["request.json"] = &fstest.MapFile{Data: []byte(request)}
			files["pv.json"] = &fstest.MapFile{Data: []byte(pv)}
		})
		tasks, err := input.Read(in)
		if err == nil && len(tasks) == 0 {
			t.Errorf("%q has no task", request)
		}
		for _, task := range tasks {
			if task.Fault == nil {
				mustBeOfOneClaim(t, task)
			}
		}
	})
}

func mustBeOfOneClaim(t *testing.T, task input.Task) {
	t.Helper()
	for _, r := range task.Request.UID {
		if r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
			t.Errorf("the UID %q is read", task.Request.UID)
		}
	}
	if task.PV.Name != task.Request.PVName || task.Volume.UID != task.Request.UID || task.Secret.Name != task.Request.PVName {
		t.Errorf("the task of %s has the PV %s, the volume of %s and the Secret %s", task.Request.UID, task.PV.Name, task.Volume.UID, task.Secret.Name)
	}
	if task.Volume.SizeGiB < 1 {
		t.Errorf("a volume of %d GiB is asked for, for %d bytes", task.Volume.SizeGiB, task.Request.Size)
	}
}
