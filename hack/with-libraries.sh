#!/bin/bash
# with-libraries.sh DIR PROGRAM...: copies programs of this machine to DIR/usr/bin, and the libraries that they need to where their loader looks for them.
set -euo pipefail

dir=${1:?usage: $0 DIR PROGRAM...}
shift
for name in "$@"; do
  program=$(PATH=$PATH:/usr/sbin:/sbin command -v "$name") || { echo "error: there is no $name: make deps" >&2; exit 1; }
  install -D -m 0755 "$program" "$dir/usr/bin/$name"
  # "NAME => PATH (ADDRESS)", or "PATH (ADDRESS)" for the loader; the kernel's own has no path.
  ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
    install -D -m 0755 "$library" "$dir$library"
  done
done
