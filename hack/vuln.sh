#!/bin/bash
# vuln.sh: looks for known vulnerabilities in the code, and in the binaries as they ship (make vuln). The binaries are stripped, so that of each linked package every
# known one is reported, called or not; the first run says which are called.
#   VULNDB=file:///DIRECTORY   a copy of the database of known vulnerabilities, which is on the internet
set -euo pipefail
cd "$(dirname "$0")/.."
database=${VULNDB:-https://vuln.go.dev}

# look: govulncheck ends with 3 if it has found something, and with another code if it could not check.
look() {
  local rc=0
  go tool -modfile=tools.mod govulncheck -db="$database" "$@" || rc=$?
  case $rc in
    0) ;;
    3) echo "vuln: ${*: -1} has known vulnerabilities" >&2; exit 3 ;;
    *) echo "vuln: NOT CHECKED: govulncheck could not check \"${*: -1}\". Cause: see above, often that $database cannot be reached. Remedy: VULNDB=file:///DIRECTORY names a copy" >&2; exit "$rc" ;;
  esac
}

look ./...
for binary in bin/flex-dispatcher bin/cinder-provisioner bin/flex bin/kubectl-flex; do look -mode=binary "$binary"; done
echo "vuln: no known vulnerability in the code and in the binaries"
