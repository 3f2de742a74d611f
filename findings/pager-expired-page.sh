#!/bin/bash
# pager-expired-page.sh: client-go's pager returns one page as the whole list, after a page has
#   expired, to a list function that limits its pages itself.
# Package: k8s.io/client-go v0.37.2, tools/pager, ListPager.List.
# Seen: without an error, List follows each continue token and returns all five objects. If the
#   token of the second page has expired, it asks for the whole list, with Limit 0, and returns the
#   answer unread: two objects of five, with a continue token, and no error. EachListItem returns
#   the error instead. So a function that gives each request a smaller limit, to spare memory, hides
#   objects from its caller whenever a token has expired. (A reflector has this pager, too.)
# Needs: Go, and its module proxy. No root, no cluster.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'END'
package main

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/pager"
)

const objects, most = 5, 2

// pages returns a list function whose pages have two objects. The first token expires, if it is to.
func pages(expires bool) pager.ListPageFunc {
	return func(_ context.Context, o metav1.ListOptions) (runtime.Object, error) {
		if o.Limit == 0 || o.Limit > most {
			o.Limit = most
		}
		if o.Continue != "" && expires {
			expires = false
			return nil, errors.NewResourceExpired("the continue parameter is too old")
		}
		from, _ := strconv.Atoi(o.Continue)
		list := &corev1.ConfigMapList{}
		for i := from; i < objects && i < from+int(o.Limit); i++ {
			list.Items = append(list.Items, corev1.ConfigMap{})
		}
		if end := from + len(list.Items); end < objects {
			list.Continue = strconv.Itoa(end)
		}
		return list, nil
	}
}

func main() {
	for _, expires := range []bool{false, true} {
		list, _, err := pager.New(pages(expires)).List(context.Background(), metav1.ListOptions{})
		accessor, _ := meta.ListAccessor(list)
		each := 0
		every := pager.New(pages(expires)).EachListItem(context.Background(), metav1.ListOptions{},
			func(runtime.Object) error {
				each++
				return nil
			})
		fmt.Printf("a page expires %t: List %d of %d, continue %q, error %v; EachListItem %d, error %v\n",
			expires, meta.LenList(list), objects, accessor.GetContinue(), err, each, every)
	}
}
END
go mod init finding >go.log 2>&1
go get k8s.io/client-go/tools/pager@v0.37.2 k8s.io/api/core/v1@v0.37.2 >>go.log 2>&1
go run . >seen
cat seen
diff seen - <<'END'
a page expires false: List 5 of 5, continue "", error <nil>; EachListItem 5, error <nil>
a page expires true: List 2 of 5, continue "2", error <nil>; EachListItem 2, error the continue parameter is too old
END
echo "as described"
