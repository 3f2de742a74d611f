#!/bin/bash
# quantity-value-zero.sh: a Kubernetes quantity that no int64 can hold has the value 0, if it is
#   written with a decimal suffix.
# Package: k8s.io/apimachinery v0.37.2, resource.Quantity, whose documentation says that larger
#   numbers are capped.
# Seen: 10E, 2e19 and 20000P have the Value 0, so they look smaller than 1. Cmp says that they
#   are larger than 9E. 10Ei, which is written with a binary suffix, is capped at the largest
#   int64. So whoever passes Value() to a storage asks it for nothing, where the claim asks for
#   more than there is.
# Needs: Go, and its module proxy. No root.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'END'
package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

func main() {
	one, nine := resource.MustParse("1"), resource.MustParse("9E")
	for _, text := range []string{"9E", "10E", "2e19", "20000P", "10Ei"} {
		q := resource.MustParse(text)
		fmt.Println(text, "Value", q.Value(), "Cmp(1)", q.Cmp(one), "Cmp(9E)", q.Cmp(nine))
	}
}
END
go mod init finding >go.log 2>&1
go get k8s.io/apimachinery/pkg/api/resource@v0.37.2 >>go.log 2>&1
go run . >seen
cat seen
diff seen - <<'END'
9E Value 9000000000000000000 Cmp(1) 1 Cmp(9E) 0
10E Value 0 Cmp(1) 1 Cmp(9E) 1
2e19 Value 0 Cmp(1) 1 Cmp(9E) 1
20000P Value 0 Cmp(1) 1 Cmp(9E) 1
10Ei Value 9223372036854775807 Cmp(1) 1 Cmp(9E) 1
END
echo "as described"
