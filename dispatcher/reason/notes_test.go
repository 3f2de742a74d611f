package reason_test

import (
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

func TestTheRemedyOfARefusedWriteIsThatOfItsCause(t *testing.T) {
	for cause, want := range map[string]string{
		`jobs.batch "provision-u-1" is forbidden: exceeded quota: few, requested: count/jobs.batch=1, ` +
			`used: count/jobs.batch=5, limited: count/jobs.batch=5`: "raise that ResourceQuota",
		`jobs.batch "provision-u-1" is forbidden: User "d" cannot create resource "jobs"`: "RBAC",
	} {
		if got := reason.RefusedWrite(cause).Remedy; !strings.Contains(got, want) {
			t.Errorf("of %s: %s", cause, got)
		}
	}
}
