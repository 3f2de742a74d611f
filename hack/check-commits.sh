#!/bin/bash
# check-commits.sh: refuses a commit of this change whose subject has more than 72 characters or a
# semicolon. Merges have subjects of git's own, and are left out. It says which it has checked:
#   * those since the merge base with origin/main, or with main where no origin/main exists,
#   * otherwise the last one: a clone of one branch, or one that is too shallow to have the merge
#     base, does not show where the change begins.
# On main itself, at or behind origin/main, no commit is of this change: no old subject is refused.
set -euo pipefail
export LC_ALL=C.UTF-8 # ${#subject} counts characters, not bytes

git() { command git -c safe.directory='*' "$@"; }

# first_of REF...: the first of these that exists, if it is not the branch that is checked out.
first_of() {
  local ref
  for ref in "$@"; do
    git rev-parse --quiet --verify "$ref^{commit}" >/dev/null || continue
    [ "$ref" = "$(git symbolic-ref --quiet HEAD)" ] || echo "$ref"
    return
  done
}

# look_at: sets commits, the arguments of git log, and where, in words.
look_at() {
  local main base=
  main=$(first_of refs/remotes/origin/main refs/heads/main)
  [ -z "$main" ] || base=$(git merge-base "$main" HEAD) || true
  if [ -n "$base" ]; then
    commits=("$base..HEAD")
    where="those since ${base:0:12}, where it left ${main#refs/*/}"
  else
    commits=(-1 HEAD)
    where="the last, since no other main is here that shows where the change begins"
  fi
}

look_at
bad=0 count=0
while read -r commit subject; do
  # In a clone with a depth of 1 git does not see that a commit is a merge.
  [[ $subject != "Merge "* ]] || continue
  count=$((count + 1))
  why=
  [ ${#subject} -le 72 ] || why="${#subject} characters, more than 72"
  [[ $subject != *";"* ]] || why="a semicolon: one change is one commit"
  [ -n "$why" ] || continue
  bad=$((bad + 1))
  echo "$commit: the subject has $why: $subject" >&2
done < <(git log --no-merges --format='%h %s' "${commits[@]}")
echo "check-commits: $count commits, $where"
[ "$bad" = 0 ] || { echo "Remedy: git rebase --interactive, and reword them" >&2; exit 1; }
