#!/bin/bash
# Back: the dispatcher of an earlier version has to serve every state that this one leaves.
#   hack/skew.sh VERSION   a tag, or any commit since test/skew has a file of bases
# This tree writes its stories, and the tests of the earlier version run on them. No root, no network.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:?usage: hack/skew.sh VERSION}
git rev-parse --quiet --verify "$version^{commit}" >/dev/null || { echo "there is no version $version: $(git tag --list 'v*' | tail -1 | grep . || echo nothing is released yet)"; exit 1; }
work=$(mktemp -d)
trap 'git worktree remove --force "$work/earlier" 2>/dev/null; rm -rf "$work"' EXIT
git worktree add --quiet --detach "$work/earlier" "$version"
go test -count=1 -run '^TestTheStories' ./test/skew -write="$work/states"
cd "$work/earlier"
go test -count=1 -timeout 30m -v -run '^TestEachStateThatAVersionLeavesIsServed$' ./test/skew -states="$work/states" | grep -vE '^=== (RUN|PAUSE|CONT)'
echo "skew: $version serves every state that this tree leaves"
