#!/bin/bash
# The verbs of flex that write to the API server or end a script, for a test without an API server. Those that work on a node's storage are its own.
case $1 in
  empty | quota) exec /bin/flex-itself "$@" ;;
  refuse) code=65 ;;
  full) code=73 ;;
  again) code=75 ;;
  misconfigured) code=78 ;;
  pv) echo "$*" >"/pvs/$FLEX_PV_NAME" ;;
  note) printf '{"uid":"%s","storageClass":"%s"}\n' "$FLEX_CLAIM_UID" "$FLEX_STORAGE_CLASS" >"$2.new" && mv "$2.new" "$2" ;;
  list) cat "${@:2}" ;;
  *) echo "flex: unknown verb $1"; code=64 ;;
esac
last=$?
[ -z "${code:-}" ] || echo "claim: $2"
exit "${code:-$last}"
