#!/bin/bash
# check-image.sh [--only FILE] ARCHIVE: refuses an image (docker-archive) that runs as root, or as a user by name, which the kubelet cannot
# compare with runAsNonRoot. With --only it holds this one file and nothing else: no shell, no tool, no library.
set -euo pipefail

die() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# of FILE: a file of the archive.
of() { tar -xOf "$archive" "$1"; }

# files: what is in the layers, as paths without the first slash.
files() {
  local layer
  of manifest.json | jq -r '.[0].Layers[]' | while read -r layer; do
    of "$layer" | tar -t
  done
}

only=
[ "${1:-}" != --only ] || { only=$2; shift 2; }
archive=${1:?usage: $0 [--only FILE] ARCHIVE}
config=$(of manifest.json | jq -er '.[0].Config') || die "$archive is no image"
user=$(of "$config" | jq -r '.config.User // ""')
[[ $user =~ ^[1-9][0-9]*(:[0-9]+)?$ ]] || die "$archive: its USER is \"$user\", not the number of one that is not root"
[ -n "$only" ] || exit 0
found=$(files)
[ "$found" = "${only#/}" ] || die "$archive: it holds more than $only, or another file:"$'\n'"${found:0:500}"
