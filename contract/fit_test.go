package contract_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

func TestResultsFitWithEqualSharesForTheirMessages(t *testing.T) {
	for _, n := range []int{1, 2, 20, contract.MaxBatch} {
		for _, size := range []int{0, 10, 500, 5000} {
			t.Run(fmt.Sprintf("%d of %d bytes", n, size), func(t *testing.T) {
				var results []contract.Result
				for i := range n {
					r := contract.NewResult(fmt.Sprintf("00000000-0000-0000-0000-%012d", i), contract.ExitTempFail)
					r.Message = strings.Repeat(`ü"`, size/3)
					results = append(results, r)
				}
				text := contract.EncodeResults(results, contract.MaxMessage-1)
				if got := contract.DecodeResults(text); len(text) >= contract.MaxMessage || len(got) != n || n <= 20 && size > 0 && got[n-1].Message == "" {
					t.Errorf("%d results in %d bytes: %.200s", len(got), len(text), text)
				}
			})
		}
	}
}

func TestAShortenedTextIsWholeUnicode(t *testing.T) {
	for limit := range 12 {
		if got := contract.Shorten("üüüüüü", limit); limit < 12 && !strings.HasSuffix(got, "…") || strings.ContainsRune(got, '�') || len(got) > max(limit, len("…")) {
			t.Errorf("of %d bytes: %q", limit, got)
		}
	}
}
