#!/bin/bash
# fuzz.sh: fuzzes every parser, one after the other (make fuzz). What makes one fail is kept in the package's
# testdata/fuzz, and is tried by make test from then on. Commit it only if nothing but our own code fails by it. A text
# that crashes or hangs a library is not committed: refuse it by a bound of ours, and test that bound just above it.
#   FUZZ_TIME=60s  for how long each
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

mapfile -t files < <(git grep -l '^func Fuzz' -- '*_test.go')
[ ${#files[@]} -gt 0 ] || { echo "error: found no fuzz test" >&2; exit 1; }
for file in "${files[@]}"; do
  while read -r name; do
    echo "== $name of ${file%/*}"
    go test -run '^$' -fuzz "^$name\$" -fuzztime "${FUZZ_TIME:-60s}" "./${file%/*}"
  done < <(sed -n 's/^func \(Fuzz[A-Za-z0-9]*\)(.*/\1/p' "$file")
done
