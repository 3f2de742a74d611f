# shellcheck shell=bash
# What ceph-rbd-provisioner.sh does with Ceph. It stands before the text of that script.
#
# Config: monitors, pool, cluster-id, node-secret. Secret: userID and userKey.
# Promises: the key is no argument, no name of the storage is read as an option, and a failure that
# is not understood never passes for "there is no such image".
set -euo pipefail
shopt -s inherit_errexit

# The messages of programs are read below.
export LC_ALL=C

# In KiB. A pool may have names without an end, and would fill the node's disk before the kubelet
# sees it.
ulimit -f 32768

secret=/etc/flex/secret
work=$(mktemp -d)
name=${FLEX_PV_NAME:-none}

# yes: this run may have made something. 77 and 78 promise that nothing was made.
made=

# Of the names that the storage lists only these are used. rbd reads others as an option, or as an
# image of another pool, also after --image.
ours='test("\\Apvc-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\\z")'

# ceph WORD...: runs rbd, and writes what it prints to the file out. It returns 2 if there is no
# such image, snapshot or value. Any other failure ends the run: rbd exits with an errno.
ceph() {
  local code=0
  # The key is read from its file, since arguments can be seen. The timeouts end a run whose
  # monitors or disks do not answer: rbd alone would wait for ever.
  rbd --conf /dev/null --mon-host "$FLEX_MONITORS" --id "$(<$secret/userID)" \
    --keyfile $secret/userKey --pool "$FLEX_POOL" --client-mount-timeout 20 \
    --rados-mon-op-timeout 20 --rados-osd-op-timeout 60 "$@" >"$work/out" 2>"$work/log" ||
    code=$?
  case $code in
    0 | 2) return "$code" ;;
  esac
  tail -c 65536 "$work/log" >&2
  failed "$code"
}

# failed CODE: ends the run with what this exit code of rbd means. Each flex is followed by exit: a
# caller that uses the result of ceph has suspended set -e.
failed() {
  local code=$1
  if [ -z "$made" ]; then
    if [ "$code" = 13 ] || grep -q "Operation not permitted" "$work/log"; then
      flex denied "Ceph refuses the user of the Secret:" \
        "an administrator must correct its key, or what it may do in the pool" || exit
    fi
  fi
  case $code in
    16 | 39)
      flex again "the image is mapped on a node, or has snapshots or clones;" \
        "the provisioner tries again" || exit
      ;;
    28 | 122)
      flex full "the pool has no room for $FLEX_SIZE bytes:" \
        "delete volumes, or ask its administrator for more" || exit
      ;;
    *)
      flex again "Ceph does not answer, or refuses the request for now (error $code);" \
        "the provisioner tries again" || exit
      ;;
  esac
}

# mebibytes prints the size that the claim requests in MiB, rounded up. Images have such sizes.
mebibytes() {
  echo $(((FLEX_SIZE + 1048575) / 1048576))
}

# grow gives the image its size, and sets now to the bytes that it has. It never shrinks one.
grow() {
  ceph info --format json "$name" ||
    flex again "the pool does not have the image: an administrator must look for it" ||
    exit
  now=$(jq .size "$work/out")
  if ! [ "$now" -ge "$FLEX_SIZE" ]; then
    now=$(($(mebibytes) * 1048576))
    ceph resize --no-progress --size "$(mebibytes)" "$name"
  fi
}

# completed IMAGE: writes the image's note to the file out, and fails if a run has not completed the
# image. A clone has the note of its source, until it gets its own.
completed() {
  ceph image-meta get "$1" flex &&
    [ "$(jq -r .volume "$work/out")" = "$1" ]
}

# state_of_snapshot IMAGE: prints whether the snapshot for the claim's clone is protected (true,
# false), or nothing if there is none. Use it in an assignment: the failure of a command in an
# argument is lost.
state_of_snapshot() {
  # Without the image there is no snapshot, either.
  ceph snap ls --format json "$1" || return 0
  jq -r '.[] | select(.name == env.FLEX_PV_NAME).protected' "$work/out"
}

# drop_snapshot IMAGE: removes the snapshot for the claim's clone, if there is one.
drop_snapshot() {
  state=$(state_of_snapshot "$1")
  [ -n "$state" ] || return 0
  # An unprotect that was killed leaves a snapshot that is not protected, and cannot be removed. So
  # it is protected and unprotected again.
  [ "$state" = true ] ||
    ceph snap protect "$1@$name"
  ceph snap unprotect "$1@$name"
  ceph snap rm --no-progress "$1@$name"
}

# drop_snapshots removes what a killed run has perhaps left in the image that it was to clone. An
# undo does not know which image that was.
drop_snapshots() {
  ceph ls --long --format json
  # rbd leaves out an image that it cannot read, and succeeds.
  if grep "^rbd: error" "$work/log" | grep -qvF "(2) No such file or directory"; then
    tail -c 65536 "$work/log" >&2
    flex again "Ceph does not show all images of the pool; the provisioner tries again"
  fi
  images=$(jq -r ".[] | select(.snapshot == env.FLEX_PV_NAME).image | select($ours)" "$work/out")
  for image in $images; do
    drop_snapshot "$image"
  done
}

# clone IMAGE: creates the claim's image from a snapshot of this one, which has the claim's name. A
# snapshot of a run that was killed is used again.
clone() {
  ceph info --format json "$1" ||
    flex refuse "the pool cannot clone this source: it must be a volume of the same class" ||
    exit
  [ "$(jq .size "$work/out")" -le $(($(mebibytes) * 1048576)) ] ||
    flex refuse "a clone cannot be smaller than its source:" \
      "request at least $(jq .size "$work/out") bytes"
  state=$(state_of_snapshot "$1")
  [ -n "$state" ] ||
    ceph snap create --no-progress "$1@$name"
  # rbd clones only what is protected.
  [ "$state" = true ] ||
    ceph snap protect "$1@$name"
  ceph clone --image-feature layering --dest-pool "$FLEX_POOL" "$1@$name" "$name"
}

# A Secret or config without these is wrong until an administrator corrects it.
for file in userID userKey; do
  [ -r $secret/$file ] ||
    flex misconfigured "the Secret lacks the file $file"
done
flex need monitors pool cluster-id node-secret
