package test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/internal/quantity"
)

// A Quantity keeps its text (ParseQuantity in k8s.io/apimachinery), so a policy sees the spelling of
// whoever wrote it.
func TestPoliciesRefuseTheSizesThatTheCodeRefuses(t *testing.T) {
	bound := regexp.MustCompile(`capacity\.\?storage[^']*''\)\)\s*\.matches\('([^']+)'\)`)
	_, specs := policies(t)
	for _, name := range []string{"flex-provisioner-pv", "flex-dispatcher-pv"} {
		var found []string
		for _, v := range specs[name].Validations {
			if m := bound.FindStringSubmatch(v.Expression); m != nil {
				found = append(found, m[1])
			}
		}
		if len(found) != 1 {
			t.Fatalf("the policy %s has %d patterns of a capacity", name, len(found))
		}
		form := regexp.MustCompile(found[0]) // as CEL's
		for _, size := range sizes() {
			if form.MatchString(size) != quantity.IsCostly(size) {
				t.Errorf("the policy %s and internal/quantity differ on %.80s", name, size)
			}
		}
	}
}

// sizes returns the spellings of what is just within the bound on sizes, and of what is just past
// it.
func sizes() []string {
	long := strings.Repeat("1", 64)
	out := []string{"0", "1Gi", "1.5Ti", "1E", long, long + "Ki", "1" + long, "+1" + long, "1" + long + "Ki", "." + long}
	for _, sign := range []string{"", "+", "-"} {
		for _, number := range []string{"1", "1.", ".1", "1.5", "1000"} {
			for _, e := range []string{"e", "E"} {
				for _, exponent := range []string{"12", "+12", "-12", "102", "+102", "-102", "012"} {
					out = append(out, sign+number+e+exponent)
				}
			}
		}
	}
	return out
}
