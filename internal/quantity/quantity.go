// Package quantity reads quantities that others write in bounded time. Kubernetes limits no
// exponent: some quantities of few characters take minutes to parse, and others, which the API
// server accepts as the size of a claim, a second to compare each time (apimachinery 0.37).
package quantity

import (
	"fmt"
	"math"
	"regexp"

	"k8s.io/apimachinery/pkg/api/resource"
)

// costly is the form of a text that is not parsed: its exponent has more than two digits, or its
// number more than 64.
var costly = regexp.MustCompile(`^[+-]?([0-9.]*[eE][+-]?[0-9]{3,}|[0-9.]{65,}.*)$`)

// IsCostly reports whether a text may be a quantity that takes long to parse.
func IsCostly(text string) bool { return costly.MatchString(text) }

// Parse returns the quantity that a text names, Bounded. It returns an error if there is none, and
// if it is costly to find out.
func Parse(text string) (resource.Quantity, error) {
	if IsCostly(text) {
		return resource.Quantity{}, fmt.Errorf("the quantity %.80s has more than 64 digits, or more than two in its exponent", text)
	}
	q, err := resource.ParseQuantity(text)
	return Bounded(q), err
}

// maxDigits is more digits than any int64 has: no quantity with fewer takes long to compare.
const maxDigits = 40

// isHuge reports whether a quantity has more than maxDigits digits. It computes none of them.
func isHuge(q resource.Quantity) bool {
	dec := q.AsDec() // changes the copy
	return dec.UnscaledBig().BitLen()*3/10-int(dec.Scale()) > maxDigits
}

// Bounded returns a quantity that an object of the API server has or, if an int64 cannot hold it,
// the largest that it can. So does Kubernetes, by the documentation of resource.Quantity, but only
// with some of the texts that it parses: the value of 10E is 0. None is below zero.
func Bounded(q resource.Quantity) resource.Quantity {
	largest := *resource.NewQuantity(math.MaxInt64, resource.BinarySI)
	switch {
	case q.Sign() <= 0:
		return *resource.NewQuantity(0, q.Format)
	case isHuge(q), q.Cmp(largest) > 0:
		return largest
	default:
		return q
	}
}
