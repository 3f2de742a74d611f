package quantity

import (
	"math"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
)

func TestAQuantityWithALongExponentIsRefused(t *testing.T) {
	for _, text := range []string{
		"1e-100", "1E100", "1e+100", "1e100", strings.Repeat("1", 65), "x", "",
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
		"10E": largest, "20Ei": largest, "1e30": largest, "1e50": largest, "0e50": 0, "-1e50": 0,
	} {
		size := Bounded(resource.MustParse(text))
		if got := size.Value(); got != want {
			t.Errorf("%s is %d, want %d", text, got, want)
		}
	}
	if q := Bounded(resource.MustParse("1500Mi")); q.String() != "1500Mi" {
		t.Errorf("a size that fits became %s", q.String())
	}
}

// To compare a quantity with this one may take long, however short its text is.
func TestAHugeQuantityIsNotCompared(t *testing.T) {
	for text, want := range map[string]bool{
		"1": false, "1e40": false, "1e41": true, "1e50": true, "-1e50": true, "500m": false,
	} {
		if got := isHuge(resource.MustParse(text)); got != want {
			t.Errorf("%s is huge: %t, want %t", text, got, want)
		}
	}
}
