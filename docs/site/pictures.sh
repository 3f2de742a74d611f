#!/bin/bash
# pictures.sh: pictures of three pages of bin/site, for a person to view: the first page, a reference, and one with a plot. They are in bin/site-pictures.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."

pages="index docs/configuration docs/performance"
port=${SITE_PORT:-8173}

hack/deps.sh chromium:chromium python3:python3
[ -e bin/site/index.html ] || { echo "error: run make site first" >&2; exit 1; }
mkdir -p bin/site-pictures
profile=$(mktemp -d)
python3 -m http.server --bind 127.0.0.1 --directory bin/site "$port" >/dev/null 2>&1 &
server=$!
trap 'kill "$server"; rm -rf "$profile"' EXIT
timeout 20 bash -c "until curl -sf -o /dev/null http://127.0.0.1:$port/; do sleep 0.2; done"
for page in $pages; do
  picture=bin/site-pictures/${page//\//-}.png
  rm -f "$picture"
  HOME=$profile timeout 120 chromium --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$profile" --virtual-time-budget=5000 \
    --window-size="${SITE_SIZE:-1400,1600}" --screenshot="$picture" "http://127.0.0.1:$port/$page.html" >"$profile/log" 2>&1 || true
  [ -s "$picture" ] || { cat "$profile/log" >&2; exit 1; }
  echo "$picture"
done
