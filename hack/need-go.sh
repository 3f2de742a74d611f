#!/bin/bash
# need-go.sh: says how to get Go where it is missing, or too old to fetch the version of go.mod itself, as Go 1.21 and later do.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
wanted=$(awk '$1 == "go" {print $2}' go.mod)
remedy="Remedy: curl -L https://go.dev/dl/go$wanted.linux-$(uname -m | sed 's/x86_64/amd64/; s/aarch64/arm64/').tar.gz | tar -xz -C ~ and then export PATH=~/go/bin:\$PATH"
if ! command -v go >/dev/null; then
  echo "Go is not in PATH. $remedy" >&2
  exit 1
fi
has=$(go env GOVERSION) # of a version before 1.16 this is empty
minor=${has#go1.}
minor=${minor%%[!0-9]*}
if [ "${minor:-0}" -lt 21 ]; then
  echo "${has:-Go} is older than 1.21, and cannot fetch the version $wanted that this tree needs. $remedy" >&2
  exit 1
fi
