# shellcheck shell=bash
# What ceph-rbd-provisioner.sh does with Ceph. It is beside that script in the image.
set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C # texts of programs are read
ulimit -f 32768 # KiB: a pool may have names without an end, and would fill the node's disk before the kubelet sees it
secret=/etc/flex/secret work=$(mktemp -d) name=${FLEX_PV_NAME:-none} made=
# Of the names that the storage lists only these are used. rbd reads others as an option, or as an image of another pool, also after --image.
ours='test("\\Apvc-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\\z")'
for file in userID userKey; do [ -r $secret/$file ] || flex misconfigured "the Secret lacks the file $file"; done
flex need monitors pool cluster-id node-secret

# ceph WORD...: runs rbd, and writes what it prints to the file out. It fails if there is no such image, snapshot or value. Any other
# failure ends the run: rbd exits with an errno. The key is read from its file, since arguments can be seen.
ceph() {
  local code=0
  rbd --conf /dev/null --mon-host "$FLEX_MONITORS" --id "$(<$secret/userID)" --keyfile $secret/userKey --pool "$FLEX_POOL" \
    --client-mount-timeout 20 --rados-mon-op-timeout 20 --rados-osd-op-timeout 60 "$@" >"$work/out" 2>"$work/log" || code=$?
  case $code in 0) return 0 ;; 2) return 2 ;; esac
  tail -c 65536 "$work/log" >&2
  if [ -z "$made" ] && { [ $code = 13 ] || grep -q "Operation not permitted" "$work/log"; }; then # 77 promises that nothing was made
    flex denied "Ceph refuses the user of the Secret: an administrator must correct its key, or what it may do in the pool" || exit
  fi
  case $code in
    16 | 39) flex again "the image is mapped on a node, or has snapshots or clones; the provisioner tries again" ;;
    28 | 122) flex full "the pool has no room for $FLEX_SIZE bytes: delete volumes, or ask its administrator for more" ;;
    *) flex again "Ceph does not answer, or refuses the request for now (error $code); the provisioner tries again" ;;
  esac || exit # also where the caller uses the result of ceph
}
grow() { # by sizes of MiB, rounded up
  ceph info --format json "$name" || flex again "the pool does not have the image: an administrator must look for it" || exit
  now=$(jq .size "$work/out")
  [ "$now" -ge "$FLEX_SIZE" ] || { now=$(((FLEX_SIZE + 1048575) / 1048576 * 1048576)); ceph resize --no-progress --size $((now / 1048576)) "$name"; }
}
# state_of_snapshot IMAGE: prints whether the snapshot for the claim's clone is protected (true, false), or nothing if there is none. Use it
# in an assignment: the failure of a command in an argument is lost.
state_of_snapshot() {
  ceph snap ls --format json "$1" || return 0 # the image does not exist
  jq -r '.[] | select(.name == env.FLEX_PV_NAME).protected' "$work/out"
}
drop_snapshot() { # IMAGE
  state=$(state_of_snapshot "$1")
  [ -n "$state" ] || return 0
  [ "$state" = true ] || ceph snap protect "$1@$name" # a killed unprotect leaves what is not protected, and is not removed
  ceph snap unprotect "$1@$name"
  ceph snap rm --no-progress "$1@$name"
}
clone() { # IMAGE
  ceph info --format json "$1" || flex refuse "the pool cannot clone this source: it must be a volume of the same class" || exit
  [ "$(jq .size "$work/out")" -le $(((FLEX_SIZE + 1048575) / 1048576 * 1048576)) ] ||
    flex refuse "a clone cannot be smaller than its source: request at least $(jq .size "$work/out") bytes"
  state=$(state_of_snapshot "$1")
  [ -n "$state" ] || ceph snap create --no-progress "$1@$name"
  [ "$state" = true ] || ceph snap protect "$1@$name"
  ceph clone --image-feature layering --dest-pool "$FLEX_POOL" "$1@$name" "$name"
}
# completed IMAGE: writes the image's note to the file out. A clone has that of its source, until it gets its own.
completed() { ceph image-meta get "$1" flex && [ "$(jq -r .volume "$work/out")" = "$1" ]; }
# drop_snapshots removes what a killed run has perhaps left in the image that it was to clone.
drop_snapshots() {
  ceph ls --long --format json
  if grep "^rbd: error" "$work/log" | grep -qvF "(2) No such file or directory"; then # it leaves out an image, and succeeds
    tail -c 65536 "$work/log" >&2
    flex again "Ceph does not show all images of the pool; the provisioner tries again"
  fi
  images=$(jq -r ".[] | select(.snapshot == env.FLEX_PV_NAME).image | select($ours)" "$work/out")
  for image in $images; do drop_snapshot "$image"; done
}
