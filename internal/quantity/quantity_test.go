package quantity

import (
	"math"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestAQuantityWithALongExponentIsRefusedAtOnce(t *testing.T) {
	for _, text := range []string{
		"1e-4000000", "1E4000000", "1e+4000000", "1e100", "1e-100", strings.Repeat("1", 65), "x", "",
	} {
		if q, err := Parse(text); err == nil {
			t.Errorf("%s is %s", text, q.String())
		}
	}
	for _, text := range []string{"1Gi", "1E", "2Ei", "1e9", "1e+9", "1E-3", "500m", "1e99", "0"} {
		if _, err := Parse(text); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
	if q, err := Parse("10E"); err != nil || q.Value() != math.MaxInt64 {
		t.Errorf("10E is %s: %v", q.String(), err)
	}
}

// A claim may have each of these sizes.
func TestASizeIsAtMostTheLargestInt64(t *testing.T) {
	const largest = math.MaxInt64
	for text, want := range map[string]int64{
		"1Gi": 1 << 30, "0": 0, "1500m": 2, "1e9": 1e9, "9223372036854775807": largest,
		"9223372036854775808": largest, "18446744073709552640": largest, "18446744075857035264": largest,
		"10E": largest, "20Ei": largest, "1e30": largest, "1e100": largest, "1e2000000": largest, "1e999999999": largest, "0e999999999": 0, "-1e2000000": 0,
	} {
		began := time.Now()
		size := Bounded(resource.MustParse(text))
		if got := size.Value(); got != want {
			t.Errorf("%s is %d, want %d", text, got, want)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("%s took %s", text, took)
		}
	}
	if q := Bounded(resource.MustParse("1500Mi")); q.String() != "1500Mi" {
		t.Errorf("a size that fits became %s", q.String())
	}
}
