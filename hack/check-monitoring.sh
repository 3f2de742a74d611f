#!/bin/bash
# check-monitoring.sh: what Prometheus' own tool says of deploy/monitoring: the rules, their tests, and the queries of the dashboard.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../deploy/monitoring"

# quiet COMMAND...: says something only if it fails.
quiet() {
  local said
  said=$("$@" 2>&1) || { echo "$said" >&2; exit 1; }
}

../../hack/deps.sh promtool:prometheus
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
quiet promtool check rules rules.yaml
quiet promtool test rules rules_test.yaml
# Each query is parsed as a rule. Grafana replaces the variables first.
jq '{groups: [{name: "dashboard", rules: [.panels[].targets // [] | .[].expr | gsub("\\$__rate_interval"; "5m") | gsub("\\$class"; ".*")]
  | to_entries | map({record: "query:\(.key)", expr: .value})}]}' dashboard.json >"$tmp/dashboard.yaml"
quiet promtool check rules "$tmp/dashboard.yaml"
