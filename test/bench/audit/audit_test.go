package audit_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flex-provisioner/flex-provisioner/test/bench/audit"
)

const log = `{"stage":"ResponseComplete","verb":"create","user":{"username":"system:serviceaccount:flex-bench:ours"},"objectRef":{"resource":"jobs","apiGroup":"batch"},"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-11-22T10:00:01.000000Z"}
{"verb":"create","user":{"username":"system:serviceaccount:flex-bench:ours"},"objectRef":{"resource":"jobs","apiGroup":"batch"},"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-11-22T10:00:02.000000Z"}
{"verb":"update","user":{"username":"system:serviceaccount:kube-system:persistent-volume-binder"},"objectRef":{"resource":"persistentvolumeclaims","subresource":"status"},"responseStatus":{"code":409},"requestReceivedTimestamp":"2026-11-22T10:00:02.000000Z"}
{"verb":"create","user":{"username":"system:kube-scheduler"},"objectRef":{"resource":"events"},"responseStatus":{"code":201},"requestReceivedTimestamp":"2026-11-22T10:00:02.000000Z"}
{"verb":"watch","user":{"username":"admin"},"objectRef":{"resource":"pods"},"requestReceivedTimestamp":"2026-11-22T10:00:02.000000Z"}
{"verb":"update","user":{"username":"system:serviceaccount:flex-system:x"},"objectRef":{"resource":"leases"},"requestReceivedTimestamp":"2026-11-22T10:00:02.000000Z"}

{"verb":"create","user":{"username":"early"},"objectRef":{"resource":"pods"},"requestReceivedTimestamp":"2026-11-22T09:59:59.999999Z"}
{"verb":"create","user":{"username":"late"},"objectRef":{"resource":"pods"},"requestReceivedTimestamp":"2026-11-22T10:00:03.000000Z"}
{"verb":"create","user":{"username":"half`

func count(t *testing.T, text string) []audit.Count {
	t.Helper()
	from := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	counts := audit.Counts{}
	if err := counts.Read(strings.NewReader(text), from, from.Add(3*time.Second)); err != nil {
		t.Fatal(err)
	}
	return counts.Sorted()
}

func TestRequestsAreCountedByActorVerbAndResource(t *testing.T) {
	want := []audit.Count{
		{Actor: "binder", Verb: "update", Resource: "persistentvolumeclaims/status", N: 1, Conflicts: 1},
		{Actor: "kube-scheduler", Verb: "create", Resource: "events", N: 1},
		{Actor: "ours", Verb: "create", Resource: "jobs", N: 2},
	}
	if diff := cmp.Diff(want, count(t, log)); diff != "" {
		t.Error(diff)
	}
}

func TestABrokenLineIsAnError(t *testing.T) {
	if err := (audit.Counts{}).Read(strings.NewReader("{no\n"), time.Time{}, time.Time{}); err == nil {
		t.Error("no error")
	}
}

func TestReadsWritesAndEventsAreDistinguished(t *testing.T) {
	for _, tt := range []struct {
		count              audit.Count
		read, write, event bool
	}{
		{count: audit.Count{Verb: "get", Resource: "pods"}, read: true},
		{count: audit.Count{Verb: "list", Resource: "pods"}, read: true},
		{count: audit.Count{Verb: "patch", Resource: "pods"}, write: true},
		{count: audit.Count{Verb: "create", Resource: "events"}, event: true},
	} {
		if c := tt.count; c.IsRead() != tt.read || c.IsWrite() != tt.write || c.IsEvent() != tt.event {
			t.Errorf("%v: read %v, write %v, event %v", c, c.IsRead(), c.IsWrite(), c.IsEvent())
		}
	}
}
