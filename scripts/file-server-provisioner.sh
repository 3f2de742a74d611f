#!/bin/bash
# A provisioner in plain bash that serves a batch: directories of an NFS server, for many claims in one run
# on a node of the storage network. A single request is a batch of one to it, since kubectl reads a
# PersistentVolume and a List of them alike.
set -uo pipefail # and no -e: one request that fails must not end the others

# requests prints a line for each: name, volume mode, and the PV itself as JSON.
requests() {
  kubectl patch --local -f /etc/flex/pv.json --type=merge -p '{}' \
    -o 'jsonpath={.metadata.name} {.spec.volumeMode} {@}{"\n"}'
}

# result NAME CODE [MESSAGE] writes the result of one request for the dispatcher. Messages hold nothing that a user wrote,
# since such text could end the JSON early.
result() { printf '{"uid":"%s","code":%d,"message":"%s"}\n' "${1#pvc-}" "$2" "${3:-}" >>/dev/termination-log; }

provision() { # NAME MODE PV
  if [ "$2" != Filesystem ]; then
    refusal='claim: a directory cannot be a raw block device: request volumeMode Filesystem'
    return 65
  fi
  mkdir -p "$FLEX_BASE_DIR/$1" && chmod 0777 "$FLEX_BASE_DIR/$1" || return 75 # pods write there as any user
  kubectl patch --local -f - --type=merge -o json <<<"$3" \
    -p '{"spec":{"nfs":{"server":"'"$FLEX_SERVER"'","path":"'"$FLEX_EXPORT/$1"'"}}}' |
    kubectl create --raw '/api/v1/persistentvolumes?fieldValidation=Strict' -f - ||
    kubectl get --raw "/api/v1/persistentvolumes/$1" || return 75 # a rerun finds it there
}

delete() { flex empty "${FLEX_BASE_DIR:?}/$1"; } # NAME. Its pods may still write there

# serve VERB NAME MODE PV
serve() {
  case $1 in
    provision) provision "$2" "$3" "$4" ;;
    delete) delete "$2" ;;
    *) echo "this image supports the verbs provision and delete, not $1"; return 64 ;;
  esac
}

list=$(requests) || exit 75
worst=0
while read -r name mode pv; do
  refusal=
  # The dispatcher chooses the PV's name, pvc-UID. No text of a user becomes part of a path.
  [[ $name =~ ^pvc-[0-9a-f-]{36}$ ]] || exit 64
  code=0
  serve "$1" "$name" "$mode" "$pv" || code=$?
  result "$name" "$code" "$refusal"
  [ "$code" = 0 ] || worst=$code
done <<<"$list"
exit "$worst" # 0 would say that every request is done
