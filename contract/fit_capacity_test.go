package contract_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Each result of an expand has the capacity of its volume. Those of the largest batch that a config
// may have fit into a termination message, too: what the kubelet cuts off counts as a failure.
func TestResultsOfTheLargestExpandFit(t *testing.T) {
	var results []contract.Result
	for i := range contract.MaxBatchOf(contract.Expand) {
		r := contract.NewResult(fmt.Sprintf("00000000-0000-0000-0000-%012d", i), 255)
		r.Capacity = contract.Bytes(math.MaxInt64)
		results = append(results, r)
	}
	if text := contract.EncodeResults(results, contract.MaxMessage-1); len(text) >= contract.MaxMessage {
		t.Errorf("%d results in %d bytes", len(contract.DecodeResults(text)), len(text))
	}
}
