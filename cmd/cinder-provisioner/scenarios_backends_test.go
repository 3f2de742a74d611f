package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// A claim of each volume type is provisioned and deleted by the command itself, with both methods
// of exporting a volume.
func TestEveryBackendIsProvisionedAndDeleted(t *testing.T) {
	eachCinder(t, func(t *testing.T, s store) {
		t.Helper()
		for source, volumeType := range s.types {
			for _, api := range s.exports() {
				t.Run(volumeType+", "+api, func(t *testing.T) { provisionBackend(t, s, api, source, volumeType) })
			}
		}
	})
}

func provisionBackend(t *testing.T, cinder store, api, source, volumeType string) {
	t.Helper()
	cinder.env = append([]string{"CEPH_KEY=QVFCa2V5"}, cinder.env...)
	r := newRig(t, cinder, api)
	r.also = map[string]string{
		"type": volumeType, "multipath": "true", "ip": "192.0.2.1", "cluster-id": "b912", "nqn": "nqn.2014-08.org.nvmexpress:uuid:nodes",
		"wwpns": "50014380186b3f64,50014380186b3f66", "wwnns": "50014380186b3f65,50014380186b3f67", "shared-lun": "true",
	}
	if code := r.run(contract.Provision); code != contract.ExitDone {
		t.Fatalf("provision ended with %d: %s", code, r.said.String())
	}
	spec, err := json.Marshal(r.kube.pv(contract.PVName(r.uid))["spec"])
	if err != nil || !strings.Contains(string(spec), `"`+source+`"`) {
		t.Errorf("the PV is mapped to %s, want %s", spec, source)
	}
	t.Logf("%s", spec)
	if code := r.run(contract.Delete); code != contract.ExitDone {
		t.Fatalf("delete ended with %d: %s", code, r.said.String())
	}
	r.count(0, 0)
}
