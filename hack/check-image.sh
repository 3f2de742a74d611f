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
config=$(of manifest.json | jq -er '.[0].Config') || die "$archive is not an image"
user=$(of "$config" | jq -r '.config.User // ""')
[[ $user =~ ^[1-9][0-9]*(:[0-9]+)?$ ]] || die "$archive: its USER is \"$user\", and must be a UID other than 0"
bytes=$(compressed)
[ "$bytes" -le "$most" ] || die "$archive: its compressed size is $bytes bytes, and the limit is $most. Strip its binaries (-ldflags '-s -w'), or remove files"
[ -n "$only" ] || exit 0
found=$(files)
[ "$found" = "${only#/}" ] || die "$archive: it must contain $only alone, and contains:"$'\n'"${found:0:500}"
