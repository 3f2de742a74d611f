#!/bin/bash
# run-docs.sh [--check] FILE [HEADING]: runs the commands of a page as a reader would: all its blocks marked bash, or those before a heading,
# in their order, in one shell, on the lab's cluster and its Cinder. openstack is that of the machine. The page's example addresses and names become the lab's.
# They see deploy and configmaps of this checkout, or with DIST=FOLDER a copy of that release alone.
# A block without a mark is one that CI cannot run. The paragraph before it must say so by [⚠ N](#what-ci-does-not-run),
# and the section of that name, at the end, must say why in its item N.
# Blocks marked yaml or text hold no commands. --check checks only the marks.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
# shellcheck source=../test/lab.sh
. test/lab.sh

ROOT=$PWD
check=
[ "${1:-}" != --check ] || { check=1; shift; }
[ -f "${1:-}" ] || die "usage: $0 [--check] FILE [HEADING]"
page=$1 heading=${2:-}
[ -z "$heading" ] || grep -qxF "$heading" "$page" || die "$page has no heading $heading"

# blocks: the commands, each after a line that says where it stands; not zero if a block is not marked as it must be.
blocks() {
  awk -v page="$page" -v heading="$heading" '
    heading && $0 == heading { exit bad }
    function fault(text) { printf "%s:%d: %s\n", page, NR, text >"/dev/stderr"; bad = 1 }
    function marked() { return last ~ /\[⚠ [0-9]+\]\(#what-ci-does-not-run\)/ }
    /^ *```/ && !inside {
      inside = 1; indent = index($0, "`") - 1; mark = substr($0, indent + 4)
      if (mark == "bash") printf "echo \"--- %s:%d\"\n", page, NR
      else if (mark == "" && !marked()) fault("this block is not run, and the paragraph before has no [⚠ N](#what-ci-does-not-run)")
      else if (mark != "" && mark !~ /^(yaml|text)$/) fault("a block marked " mark)
      next
    }
    /^ *```/ { inside = 0; paragraph = ""; next }
    inside { if (mark == "bash") print substr($0, indent + 1); next }
    /^## / { reasons = $0 == "## What CI does not run" }
    reasons && /^[0-9]+\. / { why[$1 + 0] = 1; next }
    { rest = $0; while (match(rest, /\[⚠ [0-9]+\]/)) {
        split(substr(rest, RSTART, RLENGTH), words, / |\]/); used[words[2] + 0] = NR; rest = substr(rest, RSTART + RLENGTH) } }
    /^ *$/ { paragraph = ""; next }
    { paragraph = paragraph " " $0; last = paragraph }
    END {
      if (inside) fault("a block without an end")
      if (!heading) for (n in used) if (!(n in why)) fault("line " used[n] " has ⚠ " n ", and the end of the page does not say why")
      for (n in why) if (!(n in used)) fault("the reason " n " is of no block")
      exit bad
    }' "$page"
}

# ours: what the page takes for its examples, as it is called here.
ours() { sed "s/192\.0\.2\.10/$LAB_ADDR/g; s/\bNODE\b/node1/g; s/\bNODE\([12]\)\b/node\1/g"; }

# on_network NAME FILE: the command NAME, on the lab's network.
on_network() { printf '#!/bin/sh\nexec nsenter --net=/run/netns/%s "%s" "$@"\n' "$LAB_NETNS" "$2" >"$TMP/bin/$1"; }

shims() {
  mkdir "$TMP/bin"
  printf '#!/bin/sh\nexec "%s/test/cluster/kubectl.sh" "$@"\n' "$ROOT" >"$TMP/bin/kubectl"
  printf '#!/bin/sh\nexec "%s/test/cinder/exec.sh" ceph "$@"\n' "$ROOT" >"$TMP/bin/ceph"
  cat >"$TMP/bin/ssh" <<END
#!/bin/sh
# ssh root@nodeN COMMAND...
node=\${1#root@node}
shift
exec "$ROOT/test/cluster/node.sh" exec "\$node" "\$@"
END
  on_network cinder-provisioner "$ROOT/bin/cinder-provisioner"
  on_network curl "$(command -v curl)"
  on_network openstack "$(command -v openstack || echo /usr/bin/openstack)"
  chmod +x "$TMP"/bin/*
}

TMP=$(mktemp -d)
trap 'rm -rf "$TMP"' EXIT
blocks >"$TMP/as-written" || die "$page: see above"
[ -z "$check" ] || exit 0
[ -s "$TMP/as-written" ] || die "$page has no block to run"
shims
if [ -n "${DIST:-}" ]; then cp -a "$DIST/." "$TMP/"; else cp -a deploy configmaps "$TMP/"; fi
ours <"$TMP/as-written" >"$TMP/commands"
cd "$TMP"
PATH=$TMP/bin:$PATH timeout 20m bash -euo pipefail "$TMP/commands" || die "$page: a command failed or did not end, see the last place above"
say "$page: $(grep -c '^echo "--- ' "$TMP/commands") blocks of commands were run"
