package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// orders are all requests of a run that change something, by how the class has volumes exported.
// The PV comes last, and its volume goes before its Secret.
var orders = map[string]struct{ provision, remove []string }{
	"reserve": {
		provision: []string{"POST volumes", "os-reserve", "os-initialize_connection", "os-attach", "POST secrets", "POST persistentvolumes"},
		remove:    []string{"os-terminate_connection", "os-detach", "os-unreserve", "DELETE volumes", "DELETE secrets"},
	},
	"attachments": {
		provision: []string{"POST volumes", "POST attachments", "PUT attachments", "os-complete", "POST secrets", "POST persistentvolumes"},
		remove:    []string{"DELETE attachments", "DELETE volumes", "DELETE secrets"},
	},
}

func TestRequestsThatChangeSomethingComeInTheirOrder(t *testing.T) {
	binary, all := build(t), cinders(t)
	for _, release := range cindertest.Releases() {
		server := fakeCinder(t)
		server.SetRelease(release)
		all[fmt.Sprintf("fake %d", release)] = store{endpoint: server.Endpoint(), release: strconv.Itoa(release)}
	}
	for name, s := range all {
		s.binary = binary
		for api := range orders {
			t.Run(name+"/"+api, func(t *testing.T) { testOrder(t, s, api) })
		}
	}
}

func testOrder(t *testing.T, s store, api string) {
	t.Helper()
	r := newRig(t, s, api)
	code := r.run(contract.Provision)
	if api == "attachments" && s.release == "17" { // it makes them only for servers
		if code != contract.ExitConfig || !strings.Contains(r.said.String(), "'instance_uuid' is a required property") {
			t.Errorf("exit code %d: %s", code, r.said.String())
		}
		return
	}
	r.inOrder(code, orders[api].provision)
	r.inOrder(r.run(contract.Delete), orders[api].remove)
}

// inOrder fails the test unless a run has ended well, by these requests and no others.
func (r *rig) inOrder(code int, want []string) {
	r.t.Helper()
	if code != contract.ExitDone || !slices.Equal(r.changes, want) {
		r.t.Errorf("exit code %d, after %q, want %q: %s", code, r.changes, want, r.said.String())
	}
	r.changes = nil
}
