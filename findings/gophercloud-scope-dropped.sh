#!/bin/bash
# gophercloud-scope-dropped.sh: a login by password loses its project, if the ID of an
#   application credential is given as well.
# Package: github.com/gophercloud/gophercloud/v2 v2.15.0, AuthOptions.
# Seen: ToTokenV3CreateMap logs in by the password, and ToTokenV3ScopeMap returns no scope, as
#   for an application credential. So the token is that of the user's default project, or of
#   none, and no error says so.
# Needs: Go, and its module proxy. No root, no OpenStack.
set -euo pipefail

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'END'
package main

import (
	"encoding/json"
	"fmt"

	"github.com/gophercloud/gophercloud/v2"
)

func main() {
	for _, id := range []string{"", "0123"} {
		o := gophercloud.AuthOptions{UserID: "u1", Password: "p", TenantID: "t1"}
		o.ApplicationCredentialID = id
		scope, err := o.ToTokenV3ScopeMap()
		if err != nil {
			panic(err)
		}
		body, err := o.ToTokenV3CreateMap(scope)
		if err != nil {
			panic(err)
		}
		text, err := json.Marshal(body)
		if err != nil {
			panic(err)
		}
		fmt.Printf("application credential %q: %s\n", id, text)
	}
}
END
go mod init finding >go.log 2>&1
go get github.com/gophercloud/gophercloud/v2@v2.15.0 >>go.log 2>&1
go run . >seen
cat seen
diff seen - <<'END'
application credential "": {"auth":{"identity":{"methods":["password"],"password":{"user":{"id":"u1","password":"p"}}},"scope":{"project":{"id":"t1"}}}}
application credential "0123": {"auth":{"identity":{"methods":["password"],"password":{"user":{"id":"u1","password":"p"}}}}}
END
echo "as described"
