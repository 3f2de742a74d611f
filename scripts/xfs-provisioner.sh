#!/bin/bash
# A provisioner for a node's XFS: a directory for each claim, with a size that is enforced by
# project quotas.
#
# Config: base-dir, the directory of the node that holds all volumes. Promises: no volume is without
# its limit, since it is created aside, has its limit there, and then gets its name; and each run
# may die at any step, and the next one finishes its work.
set -euo pipefail

# A config without the key is for an administrator. It is reported before anything is created.
flex need base-dir
base=$FLEX_BASE_DIR
node=${FLEX_SELECTED_NODE:-}

# No pod mounts what is in here: the notes of whose the volumes are, a directory for the project of
# each volume, and volumes that are not complete.
own=$base/.xfs
notes=$own/notes

# used prints what each project uses of its limit: of a directory that has one, statfs says that.
used() {
  local at
  local blocks
  local free
  local unit
  stat -f -c '%n %b %f %S' "$own"/projects/pvc-* | while read -r at blocks free unit; do
    echo "${at##*/} $(((blocks - free) * unit))"
  done
}

if [ "$1" = list ]; then
  # An XFS on which nothing was ever created has no notes. Without one it is not mounted, and what
  # is on it is not lost: flex list fails.
  if [ ! -d "$notes" ] && [ "$(stat -f -c %t "$base")" = 58465342 ]; then
    exec flex list
  fi
  said=$(mktemp)
  used >"$said" || true
  exec flex list --used "$said" "$notes"
fi

# The dispatcher chooses the PV's name, pvc-UID. No text of a user becomes part of a path.
dir=$base/${FLEX_PV_NAME:?}
note=$notes/$FLEX_PV_NAME
aside=$own/$FLEX_PV_NAME

# A pod can change the project of its own volume. So the project is read here, where no pod can
# write. While this directory exists, no other volume gets its project.
project=$own/projects/$FLEX_PV_NAME

# With less than a block the volume could not have one file.
size=$((${FLEX_SIZE:-0} < 1048576 ? 1048576 : FLEX_SIZE))

# The project of the volume has 31 random bits of the UID as its number. If a directory has it, the
# volume gets the next one.
uid=${FLEX_PV_NAME#pvc-}
first=$((16#${uid:0:8} | 1 << 31))

# alone waits for what the other runs of the node change, and keeps them waiting until file 9 is
# closed. Two runs could give two volumes the same project, or lower what the other has raised.
alone() {
  exec 9<"$own"
  flock -w 60 9 ||
    flex again "another run has been at work on the node $node for a minute;" \
      "the provisioner tries again"
}

# need_quotas refuses a directory whose volumes can have no limits. Another node may have project
# quotas, so a provision says that this node has no room. A volume that exists is not lost then,
# only not mounted: its delete or its growth is tried again.
need_quotas() {
  local verdict=again
  [ "$1" != provision ] || verdict=full
  flex project "$own" >/dev/null ||
    flex "$verdict" "no directory in $base of the node $node can have a limit of its own:" \
      "mount an XFS there with prjquota," \
      "or name the nodes that have one in allowedTopologies of the class"
}

# limit BYTES sets the limit of the volume, unless it has a higher one.
limit() {
  flex project "$project" "$first" "$1" >/dev/null
}

# need_room BYTES refuses what the node has no room for now. A limit reserves nothing.
need_room() {
  [ $(($(stat -f -c '%a*%S' "$base"))) -ge "$1" ] ||
    flex full "the node $node has less than $1 bytes free"
}

# create makes the volume aside, and gives it its name when it has its limit.
create() {
  need_room "$size"

  # The note comes before the volume: no volume is without one, so an audit knows whose it is.
  flex note "$note"

  # What is created in a directory has its project. So the limit comes before the volume.
  mkdir -p "$project"
  limit "$size"
  mkdir -p "$project/volume"

  # Pods write there as any user.
  chmod 0777 "$project/volume"

  # From here on it is the volume.
  mv -T "$project/volume" "$dir"
}

# provision creates the volume, and then the PV that names it.
provision() {
  # A claim that cannot be served is refused first, so that nothing is left of it.
  [ "$FLEX_VOLUME_MODE" = Filesystem ] ||
    flex refuse "a directory cannot be a raw block device: request volumeMode Filesystem"
  [[ $FLEX_ACCESS_MODES != *Many* ]] ||
    flex refuse "a directory is available on one node only: request ReadWriteOnce"

  # What has the volume's name is complete.
  alone
  [ -d "$dir" ] || create
  exec 9<&-

  # Or a power cut could leave a PV without its volume, or a volume without its limit.
  sync -f "$base"

  # The PV comes last, since a claim is bound to it at once: the volume must be there by then.
  flex pv --local "$dir"
}

# expand raises the limit, and never lowers it: an earlier run may have raised it to more.
expand() {
  # Without the volume there is nothing to grow, and nothing is created in its place.
  [ -d "$dir" ] || flex again "the volume does not exist: an administrator must look for it"

  # The limit is read and raised under the lock. Otherwise an earlier run that is still at work
  # could lower what this one has raised.
  alone
  local now
  now=$(flex project "$project")
  if [ "$now" -lt "$size" ]; then
    need_room $((size - now))
    limit "$size"
    now=$(flex project "$project")
  fi

  # The note has the size, which the list shows.
  flex note "$note"

  # The limit is on the disk before the claim says the new size.
  sync -f "$base"
  flex grown "$now"
}

# delete deletes the volume, then its limit and its project, and last its note.
delete() {
  # An audit deletes what a list has named. It must be this claim's.
  [ "${FLEX_LISTED_VOLUME:-$FLEX_PV_NAME}" = "$FLEX_PV_NAME" ] ||
    flex again "the listed volume is not the claim's"

  # No PV can mount what has no name.
  alone
  if [ -d "$dir" ]; then
    flex empty "$aside"
    mv -T "$dir" "$aside"
  fi
  exec 9<&-

  # Its pods may still write there, so the limit holds until nothing is left.
  flex empty "$aside"
  alone
  if [ -d "$project" ]; then
    limit 0
    flex empty "$project"
  fi
  exec 9<&-
  rm -f "$note"
  sync -f "$base"
}

# Another verb must end before anything is created.
verb=$1
case $verb in
  provision | expand | delete) ;;
  *)
    echo "this script supports the verbs provision, expand, delete and list, not $1"
    exit 64
    ;;
esac
mkdir -p "$notes" "$own/projects"
need_quotas "$verb"
"$verb"
