package runs_test

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

func TestRunWithoutEnoughMemoryIsReportedWithItsRemedy(t *testing.T) {
	for _, out := range []runs.Outcome{
		{Verdict: contract.TryAgain, Reason: "OOMKilled", ExitCode: new(int32(137))},
		{Verdict: contract.TryAgain, Reason: "OOMKilled", Message: "claim: lists volumes"},
		{Verdict: contract.Unlisted, Reason: "OOMKilled"},
	} {
		said := strings.Join(runs.MessageParts(out, &batchv1.Job{}), "; ")
		if !strings.Contains(said, "must raise resources.limits.memory of the container provisioner") || !strings.Contains(said, "256Mi") || strings.Contains(said, "lists") != (out.Message != "") {
			t.Errorf("of %s is said %q", out, said)
		}
	}
	if said := runs.MessageParts(runs.Outcome{Verdict: contract.TryAgain, Reason: "Evicted"}, &batchv1.Job{}); len(said) > 0 {
		t.Errorf("of an evicted pod is said %q", said)
	}
}

// The output of kubectl names the ServiceAccount and not the role that it lacks.
func TestALackOfPermissionsNamesTheRole(t *testing.T) {
	const forbidden = `Error from server (Forbidden): error when creating "STDIN": persistentvolumes is forbidden: User "system:serviceaccount:flex-provisioner:writer" ` +
		`cannot create resource "persistentvolumes" in API group "" at the cluster scope`
	for output, want := range map[string]bool{
		forbidden:                     true,
		"claim: failed\n" + forbidden: true,
		`secrets is forbidden: User "a" cannot get resource "secrets" in API group ""`: false,
		"permission denied": false,
	} {
		said := strings.Join(runs.MessageParts(runs.Outcome{Verdict: contract.TryAgain, Message: output}, &batchv1.Job{}), "; ")
		if got := strings.Contains(said, "ClusterRole flex-provisioner-volumes"); got != want {
			t.Errorf("of %q is said %q", output, said)
		}
	}
	describes := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{contract.LabelClaimUID: "u"}, Annotations: map[string]string{jobs.AnnRecord: `{"version":1}` + "\n" + `{"uid":"u","describesPV":true}`},
	}}
	if said := strings.Join(runs.MessageParts(runs.Outcome{Verdict: contract.TryAgain, Message: forbidden}, describes), "; "); strings.Contains(said, "ClusterRole") {
		t.Errorf("of a container without a token is said %q", said)
	}
}

// The kernel's words are the container's output, with exit code 1, as runc leaves them.
func TestAClaimSaysThatItsImageMayBeForAnotherArchitecture(t *testing.T) {
	for output, want := range map[string]bool{
		"exec /provision: exec format error":                            true,
		"/bin/tool: cannot execute binary file: Exec format error":      true,
		"format error in the answer of the filer":                       false,
		"claim: the storage has a format error, which exec cannot help": false,
	} {
		out := runs.Outcome{Verdict: contract.TryAgain, ExitCode: new(int32(1)), Message: output}
		said := strings.Join(runs.MessageParts(out, &batchv1.Job{}), "; ")
		if got := strings.Contains(said, "built for another architecture"); got != want {
			t.Errorf("of %q is said %q", output, said)
		}
	}
}

// What a runtime says of a script is said with the key that is to be corrected.
func TestAScriptThatItsImageCannotRunIsExplained(t *testing.T) {
	none := fixture.Build(t, fixture.Provision(fixture.Config(t, "Delete", nil), fixture.Claim()))
	const noFlex, noInterpreter = "remove batch-size from the class's ConfigMap", "lacks the interpreter in the first line"
	for text, tc := range map[string]struct {
		out  runs.Outcome
		want string
		says bool
	}{
		"runc, no flex": {runs.Outcome{
			Verdict: contract.NotStarted, Reason: "StartError",
			Message: `OCI runtime create failed: runc create failed: exec: "flex": executable file not found in $PATH`,
		}, noFlex, true},
		"crun, no flex": {runs.Outcome{
			Verdict: contract.NotStarted, Reason: "StartError", Message: "crun: executable file `flex` not found in $PATH",
		}, noFlex, true},
		"another program": {runs.Outcome{
			Verdict: contract.NotStarted, Reason: "StartError", Message: `exec: "/provision": executable file not found in $PATH`,
		}, noFlex, false},
		"no interpreter": {runs.Outcome{
			Verdict: contract.TryAgain, Message: "exec /etc/flex/script: no such file or directory",
		}, noInterpreter, true},
		"another file": {runs.Outcome{
			Verdict: contract.TryAgain, Message: "cat: /etc/flex/secret/key: no such file or directory",
		}, noInterpreter, false},
	} {
		if got := strings.Join(runs.MessageParts(tc.out, none), "\n"); strings.Contains(got, tc.want) != tc.says {
			t.Errorf("%s: got %q", text, got)
		}
	}
}
