#!/bin/bash
# check-image.sh [--only FILE] ARCHIVE: refuses an image (docker-archive) that runs as root, or as a user by name, which the kubelet cannot
# compare with runAsNonRoot, and one of more than 25 MB as a registry stores it, by gzip: every node pulls it before its first run. With
# --only it holds this one file and nothing else: no shell, no tool, no library.
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

# compressed: how many bytes the archive has in a registry. Most are small enough at gzip's fastest, which is never smaller.
compressed() {
  local level bytes
  for level in 1 6; do
    bytes=$(gzip "-$level" -c "$archive" | wc -c)
    [ "$bytes" -gt "$most" ] || break
  done
  echo "$bytes"
}

most=25000000
only=
[ "${1:-}" != --only ] || { only=$2; shift 2; }
archive=${1:?usage: $0 [--only FILE] ARCHIVE}
config=$(of manifest.json | jq -er '.[0].Config') || die "$archive is no image"
user=$(of "$config" | jq -r '.config.User // ""')
[[ $user =~ ^[1-9][0-9]*(:[0-9]+)?$ ]] || die "$archive: its USER is \"$user\", not the number of one that is not root"
bytes=$(compressed)
[ "$bytes" -le "$most" ] || die "$archive: it has $bytes bytes when it is compressed, more than $most. Strip what it holds (-ldflags '-s -w'), or leave some out"
[ -n "$only" ] || exit 0
found=$(files)
[ "$found" = "${only#/}" ] || die "$archive: it holds more than $only, or another file:"$'\n'"${found:0:500}"
