#!/bin/bash
# outcome.sh REPORT DRIVER: compares ginkgo's report in JSON with the specs that DRIVER/skips expects to be skipped, and prints the counts. A line
# "# REASON" there holds for the specs that follow. The suite itself skips them, by what the driver cannot do; one behind "- " is not to run at all.
# It fails, and names the spec, if one has failed, is skipped and not expected to be, or is expected to be skipped and is not.
set -euo pipefail

report=${1:?ginkgo\'s report} driver=${2##*/} skips=${2:?the folder of a driver}/skips
TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT

# A spec that is not part of the run is skipped, too, but without a message.
jq -r --arg driver "[Driver: $driver]" '.[].SpecReports[] |
  select(.LeafNodeType == "It" and (.ContainerHierarchyTexts | length > 0 and (.[0] | endswith($driver)))) |
  [if .State != "skipped" then .State elif (.Failure.Message // "") != "" then "skipped" else "left out" end,
   (.ContainerHierarchyTexts[1:] + [.LeafNodeText] | join(" "))] | @tsv' "$report" >"$TMP/specs"

of() { sed -n "s/^$1\t//p" "$TMP/specs" | sort; }
count() { of "$1" | wc -l; }

# complain TEXT: each line of the input is a spec for which this is so.
complain() { sed "s/^/error: $driver: $1: /" | tee -a "$TMP/errors" >&2; }

grep -v '^#\|^- \|^$' "$skips" | sort >"$TMP/expected" || true
sed -n 's/^- //p' "$skips" | sort >"$TMP/omitted"
grep -vP '^(passed|skipped|left out)\t' "$TMP/specs" | complain "not passed" || true
comm -23 <(of skipped) "$TMP/expected" | complain "skipped, which is not expected"
comm -13 <(of skipped) "$TMP/expected" | complain "expected to be skipped, and was not"
comm -13 <(of 'left out') "$TMP/omitted" | complain "to be left out, and was not"
[ "$(count passed)" -gt 0 ] || echo "nothing has passed" | complain "no test"
jq -r '.[] | select(.SuiteSucceeded | not) | (.SpecialSuiteFailureReasons // [])[], "the suite"' "$report" | complain "failed"
[ ! -s "$TMP/errors" ] || exit 1
echo "$(count passed) passed, $(count skipped) skipped as expected, $(wc -l <"$TMP/omitted") left out"
