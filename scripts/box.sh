# shellcheck shell=bash
# What the provisioners share that work on a storage box over ssh. It stands before their own text.
#
# Config: box, and for iSCSI iqn and portal. Secret: key, known_hosts, and for iSCSI chap.
# Promises: only plain words reach a shell of the box, no secret is an argument or in a log, and a
# run without an answer of the box never ends as a success.
set -euo pipefail
shopt -s inherit_errexit

# The messages of programs are read below.
export LC_ALL=C

# In KiB. A box may answer without an end, and would fill the node's disk before the kubelet sees
# it.
ulimit -f 32768

secret=/etc/flex/secret
work=$(mktemp -d)
name=${FLEX_PV_NAME:-none}

# No shell interprets a character of such a word, and no program reads one as an option.
plain='^[A-Za-z0-9._:/+=][A-Za-z0-9._:/+=-]*$'

# secret_has FILE...: the Secret has these files, with a content.
secret_has() {
  local file
  for file; do
    [ -s "$secret/$file" ] ||
      flex misconfigured "the Secret lacks the file $file, or it is empty"
  done
}

# names KEY...: the config has these keys, and their values are plain words.
names() {
  local key value
  flex need "$@"
  for key; do
    # The key volume-group is the variable FLEX_VOLUME_GROUP.
    value=FLEX_${key//-/_}
    value=${value^^}
    [[ ${!value} =~ $plain ]] ||
      flex misconfigured "the key $key may have only letters, digits, and . _ : / + = -: ${!value}"
  done
}

# program WORD...: prints what sh is to run on the box: the recipe's program, which the function
# on_box_program of the recipe prints, with these arguments.
program() {
  # This word separates the program's answer from what the login shell prints when it starts. The
  # login shell may end its greeting without a line break.
  echo 'echo'
  echo 'echo flex-on-box'
  # ssh itself fails with 255, so the program must not: each code from 126 on becomes 1.
  echo 'trap "[ \$? -lt 126 ] || exit 1" EXIT'
  echo "set -- $*"
  on_box_program
}

# on_box WORD...: runs the recipe's program on the host FLEX_BOX with these arguments, and writes
# what it prints to the file said. The program's input is that of this function. A failure ends the
# run with the program's exit code: the program has said why.
on_box() {
  local codes=(0 0)
  local word text

  # A blank would make two words of one, and shift all others.
  for word; do
    [[ $word =~ $plain ]] || flex again "the box cannot be asked for $word"
  done
  text=$(program "$@" | base64 -w 0)

  # The login shell of the box may be zsh or csh, which cannot read a program for sh. Each of them
  # reads this one line alike, which starts sh. The options keep ssh from waiting for a person, and
  # from any box but the one in known_hosts. cat writes the answer, so that a full disk shows as its
  # failure: ssh does not report one.
  ssh -F none -T -i "$secret/key" -o "UserKnownHostsFile=$secret/known_hosts" \
    -o StrictHostKeyChecking=yes -o BatchMode=yes -o IdentitiesOnly=yes \
    -o ConnectTimeout=10 -o ServerAliveInterval=10 -- "$FLEX_BOX" \
    "exec sh -c 'eval \"\$(echo $text | base64 -d)\"'" 2>"$work/log" | cat >"$work/out" ||
    codes=("${PIPESTATUS[@]}")

  # The node writes the log of this pod, and no limit on files holds for it.
  tail -c 65536 "$work/log" >&2

  # This comes first: what the box has done is unknown then, whatever its exit code is.
  [ "${codes[1]}" = 0 ] ||
    flex again "the storage's answer is too long, or the disk of the provisioner's node is full"

  # From 128 on ssh has failed, or was killed.
  [ "${codes[0]}" -lt 128 ] || unreachable
  began
  [ "${codes[0]}" = 0 ] || exit "${codes[0]}"
}

# unreachable ends a run whose ssh has failed, by what ssh says.
unreachable() {
  ! grep -q "Permission denied (" "$work/log" ||
    flex denied "the box refuses the key of the Secret"
  ! grep -q "Host key verification failed" "$work/log" ||
    flex misconfigured "the host key of the box is not in the file known_hosts of the Secret"
  flex again "the storage does not answer; the provisioner tries again"
}

# began writes what the program has printed to the file said. If the program has not begun, it ends
# the run: nothing was done, even if the exit code is 0, as that of sh without base64 is.
began() {
  # What the box printed instead is not logged: it may be the program's input, which has the
  # password.
  grep -qx flex-on-box "$work/out" ||
    flex misconfigured "the box has not run the provisioner's program:" \
      "its user needs a login shell, sh and base64, and its key no command of its own"
  # The program prints the word a second time when it has the lock.
  sed -e '1,/^flex-on-box$/d' -e '/^flex-on-box$/d' "$work/out" >"$work/said"
}

# qualified: the key iqn is a name that targets take as it is. LIO makes letters lower-case, and
# refuses an underscore, and a domain without a dot (normalize_wwn of rtslib-fb). Only provision
# calls this: a volume that tgt exports under another name can be deleted.
qualified() {
  [[ $FLEX_IQN =~ ^iqn\.[0-9]{4}-[01][0-9]\.[a-z0-9.:-]+$ ]] ||
    flex misconfigured "the key iqn may have only letters in lower case, digits, and . : -," \
      "as iqn.2026-11.example.box has: $FLEX_IQN"
}

# chap writes the login of the claim's target to the files username and password. It is the same in
# every run, since no run can read the Secret that an earlier one has written.
chap() {
  secret_has chap
  flex need portal
  printf %s "$name" >"$work/username"
  {
    cat "$secret/chap"
    echo "$FLEX_CLAIM_UID"
  } | sha256sum | head -c 32 >"$work/password"
}

# iscsi_pv IQN: writes the Secret with this login, and the PersistentVolume.
iscsi_pv() {
  local iqn=$1
  local namespace

  # The Secret is first: a node reads it as soon as the PV exists. If this process dies in between,
  # the next run replaces the Secret, and a delete removes it.
  namespace=$(flex secret kubernetes.io/iscsi-chap \
    "node.session.auth.username=$work/username" "node.session.auth.password=$work/password")

  flex pv "$(jq -c --arg iqn "$iqn" --arg name "$name" --arg namespace "$namespace" '
    .requests[] | select(.uid == env.FLEX_CLAIM_UID) | {
      metadata: {
        annotations: (
          {"flex-provisioner.io/secret": "\($namespace)/\($name)"}
          + if .source then
              {"flex-provisioner.io/clone-of": "\(.source.namespace)/\(.source.name)"}
            else {} end
        )
      },
      spec: (
        {
          iscsi: {
            targetPortal: env.FLEX_PORTAL,
            iqn: $iqn,
            lun: 1,
            fsType: (env.FLEX_FSTYPE // "ext4"),
            chapAuthSession: true,
            secretRef: {$name, $namespace}
          }
        }
        # The clone of an xfs has its UUID. The kernel mounts both on one node only with this
        # option.
        + if .source and env.FLEX_FSTYPE == "xfs" and .volumeMode == "Filesystem" then
            {mountOptions: ((.mountOptions // []) | . + (["nouuid"] - .))}
          else {} end
      )
    }' /etc/flex/request.json)"
}

# refuse_many refuses a claim that several nodes may use: each would write to the disk as if it were
# alone.
refuse_many() {
  case $FLEX_ACCESS_MODES in
    *Many*)
      flex refuse "an iSCSI disk can be used on one node only: request ReadWriteOnce"
      ;;
  esac
}

# source_of_claim prints the volume that the claim is a clone of, or none. A source whose PV does
# not have the name of its claim is of another storage.
source_of_claim() {
  jq -r '
    .requests[] | select(.uid == env.FLEX_CLAIM_UID).source |
    if . == null then "none"
    elif .pvName == "pvc-" + .uid then .pvName
    else "of-another-storage" end' /etc/flex/request.json
}

# grown reports the size of the claim's volume in bytes, which the box has printed.
grown() {
  flex grown "$(head -c 20 "$work/said")"
}

# show_list prints the volumes in the file list, one a line. flex takes an empty file for a fault.
show_list() {
  if [ -s "$work/list" ]; then
    flex list "$work/list"
  else
    flex list
  fi
}

secret_has key known_hosts
flex need box
