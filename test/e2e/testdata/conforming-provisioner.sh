#!/bin/bash
# A provisioner that keeps every promise that kubectl flex conform tests, but for the one that its config's key "breaks" names. Its volumes are
# directories of node1, and beside them is what it knows of each: a note, the word "half" while a run is at work on it, and its size.
set -euo pipefail
breaks() { [ "${FLEX_BREAKS:-}" = "$1" ]; }
own=$FLEX_OWN
if [ "$1" = list ]; then
  if breaks list; then flex list "$own/notes" | sed 's/"storageClass":"[^"]*",//'; else flex list "$own/notes"; fi
  exit
fi
if [ -z "${FLEX_CLAIM_UID:-}" ]; then
  ! breaks batch || exit 1
  exec flex each 8 /bin/bash -c "$BASH_EXECUTION_STRING" provision "$@"
fi
dir=/var/lib/flex-volumes/$FLEX_PV_NAME note=$own/notes/$FLEX_PV_NAME half=$own/$1-$FLEX_PV_NAME
mkdir -p "$own/notes"

# slowly is where a run is killed, in the tests of that.
slowly() { [[ $FLEX_CLAIM_NAME != "$1"-killed-* ]] || sleep 8; }
# ends BREAK VERB TEXT: as the verb of flex says, but for the image that breaks this.
ends() { if breaks "$1"; then echo "claim: $3"; exit 75; else flex "$2" "$3"; fi; }

refuse() {
  [ "${FLEX_MODE:-}" != wrong ] || ends bad-config misconfigured "the mode is wrong"
  [ "${FLEX_LOGIN:-}" != wrong ] || flex denied "the login is wrong"
  [ "${FLEX_ROOM:-}" != none ] || ends no-capacity full "there is no room"
  [ "$FLEX_SIZE" -gt $((10 << 30)) ] || return 0
  ! breaks quiet || flex refuse "the login $PASSWORD gets at most 10Gi"
  ! breaks refuses || { echo "too large"; exit 65; }
  flex refuse "this class serves at most 10Gi"
}

provision() {
  local source='' patch namespace request
  refuse
  ! breaks provision || exit 0
  ! breaks provision-again || [ ! -d "$dir" ] || { echo "$dir exists"; exit 1; }
  ! breaks provision-killed || [ ! -e "$half" ] || { echo "$half exists"; exit 1; }
  touch "$half"
  slowly provision
  request=$(</etc/flex/request.json)
  [[ ! $request =~ '"source":{'.*'"pvName":"'(pvc-[0-9a-f-]{36})'"}' ]] || source=${BASH_REMATCH[1]}
  if breaks batch; then # a name that all scripts of a pod share
    echo "$dir" >/tmp/directory
    sleep 1
    dir=$(</tmp/directory)
  fi
  flex note "$note"
  mkdir -p "$dir"
  [ -z "$source" ] || breaks clone || cp -a "/var/lib/flex-volumes/$source/." "$dir"
  chmod 0777 "$dir"
  ! breaks mount || mkdir -p "$dir/conform" # where a pod of the test is to write; the kubelet gives any directory to the group of the pod
  rm "$half"
  echo "secret of $FLEX_PV_NAME" >/tmp/token
  namespace=$(flex secret Opaque token=/tmp/token)
  patch='"spec":{"local":{"path":"'$dir'"},"nodeAffinity":{"required":{"nodeSelectorTerms":[{"matchExpressions":[{"key":"kubernetes.io/hostname","operator":"In","values":["node1"]}]}]}}'
  ! breaks provision-pv || [[ $FLEX_CLAIM_NAME = batch-* ]] || patch+=',"storageClassName":"another"' # a policy refuses that in a batch
  patch+='},"metadata":{"annotations":{"flex-provisioner.io/none":null'
  breaks secret || patch+=',"flex-provisioner.io/secret":"'$namespace/$FLEX_PV_NAME'"'
  [ -z "$source" ] || [[ ! $request =~ '"source":{"kind":"PersistentVolumeClaim","namespace":"'([^\"]*)'","name":"'([^\"]*)'"' ]] || patch+=',"flex-provisioner.io/clone-of":"'${BASH_REMATCH[1]}/${BASH_REMATCH[2]}'"'
  flex pv "{$patch}}}"
}

expand() {
  ! breaks expand || exit 0
  ! breaks expand-killed || [ ! -e "$half" ] || { echo "$half exists"; exit 1; }
  touch "$half"
  slowly expand
  flex note "$note"
  rm "$half"
}

delete() {
  if [ "${FLEX_LOGIN:-}" = wrong ]; then
    ! breaks bad-credentials || exit 0
    flex denied "the login is wrong"
  fi
  flex secret --delete
  if [ "$FLEX_UNDO" = true ]; then
    ! breaks provision-abandoned || exit 0
    ! breaks undo-refused || [ -e "$half-failed" ] || { touch "$half-failed"; refuse; } # once, as below
  else
    ! breaks delete || exit 0
    ! breaks delete-killed || [ -d "$dir" ] || [ -e "$half-failed" ] || { touch "$half-failed"; echo "$dir does not exist"; exit 1; } # once, so that nothing is left
  fi
  flex empty "$dir"
  slowly delete
  rm -f "$note" "$own"/*"-$FLEX_PV_NAME"*
}

case $1 in
  provision | expand | delete) "$1" ;;
  *) exit 64 ;;
esac
