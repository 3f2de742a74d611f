package runs_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// Whatever a container writes, its outcome can be recorded and is read back as the same, and no
// claim of a batch is done by the result of another one.
func FuzzTerminationMessage(f *testing.F) {
	f.Add(int32(0), `{"uid":"one","code":0}`+"\n"+`{"uid":"two","code":75,"message":"claim: busy"}`)
	f.Add(int32(1), "claim: no room\n+ set -x\n")
	f.Add(int32(0), `{"uid":"one","code":0,"capacity":"2Gi"}`+"\n"+`{"uid":"one","code":1,"capacity":"1e100"}`)
	f.Add(int32(0), `{"uid":"one","code":0}`+"\n"+`{"uid":"two","code":1,"capacity":"2Gi"}`)
	f.Add(int32(1), `{"uid":"one","code":0,"capacity":"1e-100"}`+"\n"+`{"uid":"two","code":0,"capacity":1E-100}`)
	f.Add(int32(137), "\x1b[31m\xff\x00claim: red")
	f.Fuzz(func(t *testing.T, code int32, message string) {
		if len(message) > contract.MaxMessage {
			return // the kubelet keeps no more
		}
		single := endedBatch(contract.Expand, code)
		single.Annotations[jobs.AnnUIDs] = "one"
		for _, job := range []*batchv1.Job{single, endedBatch(contract.Provision, code), endedBatch(contract.Expand, code)} {
			for _, uid := range jobs.UIDs(job) {
				out := runs.ReadFor(job, uid, []*corev1.Pod{exited(code, message)}, now)
				mustBeRecordable(t, out)
				if len(jobs.UIDs(job)) > 1 && out.Verdict == contract.Done && !mayBeDone(code, message, uid) {
					t.Errorf("%s is done by the exit code %d and the message %q", uid, code, message)
				}
			}
		}
	})
}

// mayBeDone reports whether a claim of a batch may count as done: its own result says so, or it has
// none, and nothing has failed.
func mayBeDone(code int32, message, uid string) bool {
	listed := slices.DeleteFunc(contract.DecodeResults(message), isDamaged)
	if slices.ContainsFunc(listed, func(r contract.Result) bool { return r.UID == uid && r.IsDone() }) {
		return true
	}
	return code == 0 && !slices.ContainsFunc(listed, func(r contract.Result) bool { return !r.IsDone() })
}

// longExponent is what no capacity has: to parse a quantity with one may take minutes.
var longExponent = regexp.MustCompile(`[eE][+-]*[0-9]{3,}$`)

// isDamaged reports whether the capacity of a result is no quantity.
func isDamaged(r contract.Result) bool {
	if longExponent.MatchString(string(r.Capacity)) {
		return true
	}
	_, err := resource.ParseQuantity(string(r.Capacity))
	return r.Capacity != "" && err != nil
}

func mustBeRecordable(t *testing.T, out runs.Outcome) {
	t.Helper()
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	var again runs.Outcome
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatalf("%s cannot be read back: %v", text, err)
	}
	if diff := cmp.Diff(out, again); diff != "" {
		t.Errorf("%s is read back as something else:\n%s", text, diff)
	}
	for _, r := range out.Message {
		if r != '\n' && !unicode.IsPrint(r) {
			t.Errorf("the message %q is not printable", out.Message)
		}
	}
	if len(out.Message) > 1024 {
		t.Errorf("the message has %d bytes", len(out.Message))
	}
}
