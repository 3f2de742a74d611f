package runs_test

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
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
