package jobs_test

import (
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// A config's pod-template may set labels that policies overwrite.
func TestOnlyTheDispatchersPartOfAJobMustBeStored(t *testing.T) {
	sent := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{
		Labels: map[string]string{"team": "blue", contract.LabelClaimUID: "u"}, Annotations: map[string]string{"notes": "x"},
	}}
	stored := sent.DeepCopy()
	stored.Labels["team"], stored.Labels["owner"], stored.Annotations = "red", "policy", nil
	if got := jobs.Missing(sent, stored); len(got) > 0 {
		t.Errorf("missing %q, want nothing", got)
	}
	delete(stored.Labels, contract.LabelClaimUID)
	if got := jobs.Missing(sent, stored); !slices.Equal(got, []string{"the label " + contract.LabelClaimUID}) {
		t.Errorf("missing %q, want the claim's label", got)
	}
}
