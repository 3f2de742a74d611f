# shellcheck shell=bash
# What the provisioners over ssh share, which is beside them in their image.
set -euo pipefail
shopt -s inherit_errexit
export LC_ALL=C # texts of programs are read
ulimit -f 32768 # KiB: a box may answer without an end, and would fill the node's disk before the kubelet sees it
secret=/etc/flex/secret work=$(mktemp -d) name=${FLEX_PV_NAME:-none}

# secret_has FILE...: the Secret has these files, with a content.
secret_has() {
  for file; do [ -s "$secret/$file" ] || flex misconfigured "the Secret lacks the file $file, or it is empty"; done
}
secret_has key known_hosts
flex need box

# names KEY...: the config has these keys, and no shell interprets a character of their values.
names() {
  local key value
  flex need "$@"
  for key; do
    value=FLEX_${key//-/_}
    value=${value^^}
    [[ ${!value} =~ $plain ]] ||
      flex misconfigured "the key $key may have only letters, digits, and . _ : / + = -: ${!value}"
  done
}
plain='^[A-Za-z0-9._:/+=][A-Za-z0-9._:/+=-]*$'

# program WORD...: prints what sh is to run on the box: the program on-box, with these arguments.
# The word flex-on-box separates its answer from what the login shell prints when it starts.
program() {
  echo "echo; echo flex-on-box"
  # Code 255 is ssh's own, so no program's there may be.
  echo 'trap "[ \$? -lt 126 ] || exit 1" EXIT'
  echo "set -- $*"
  cat "${0%/*}/on-box"
}

# on_box WORD...: runs the program on-box on the host FLEX_BOX with these arguments; its input is
# this one's. The login shell there may be zsh or csh, which read no program of sh: it gets one line
# that each shell reads alike, and that starts sh. The words have only characters that no shell
# interprets, and no blank: each would be in the place of another. The program chooses the exit
# code, and says why. What it prints is in the file said: no limit of this pod's files holds for its
# log, which the node writes.
on_box() {
  local codes=(0 0) word text
  for word; do
    [[ $word =~ $plain ]] || flex again "the box cannot be asked for $word"
  done
  text=$(program "$@" | base64 -w 0)
  ssh -F none -T -i "$secret/key" -o "UserKnownHostsFile=$secret/known_hosts" \
    -o StrictHostKeyChecking=yes -o BatchMode=yes -o IdentitiesOnly=yes \
    -o ConnectTimeout=10 -o ServerAliveInterval=10 -- "$FLEX_BOX" \
    "exec sh -c 'eval \"\$(echo $text | base64 -d)\"'" 2>"$work/log" | cat >"$work/out" ||
    codes=("${PIPESTATUS[@]}")
  tail -c 65536 "$work/log" >&2
  # ssh does not say that its answer could not be written. What the box has done is unknown then.
  [ "${codes[1]}" = 0 ] ||
    flex again "the storage's answer is too long, or the disk of the provisioner's node is full"
  if [ "${codes[0]}" -lt 128 ]; then # else ssh has failed, or was killed
    began
    [ "${codes[0]}" = 0 ] || exit "${codes[0]}"
    return
  fi
  ! grep -q "Permission denied (" "$work/log" || flex denied "the box refuses the key of the Secret"
  ! grep -q "Host key verification failed" "$work/log" || flex misconfigured "the host key of the box is not in the file known_hosts of the Secret"
  flex again "the storage does not answer; the provisioner tries again"
}

# began writes what the program on-box has answered to the file said. Without it nothing was done,
# whatever the exit code is: sh without base64 succeeds.
began() {
  if ! grep -qx flex-on-box "$work/out"; then
    # What it printed instead stays out of the log: it may be its input, which has the password.
    flex misconfigured "the box has not run the provisioner's program: its user needs a login shell," \
      "sh and base64, and its key no command of its own"
  fi
  sed -e '1,/^flex-on-box$/d' -e '/^flex-on-box$/d' "$work/out" >"$work/said" # again after the lock
}

# qualified: the key iqn is a name that targets take as it is. LIO makes letters lower-case, and
# refuses an underscore, and a domain without a dot (normalize_wwn of rtslib-fb). A volume that tgt
# exports under another name can be deleted.
qualified() {
  [[ $FLEX_IQN =~ ^iqn\.[0-9]{4}-[01][0-9]\.[a-z0-9.:-]+$ ]] ||
    flex misconfigured "the key iqn may have only letters in lower case, digits, and . : -," \
      "as iqn.2026-11.example.box has: $FLEX_IQN"
}

# chap writes the login of the claim's target to files. It is the same in every run: the Secret of an earlier run cannot be read.
chap() {
  secret_has chap
  flex need portal
  printf %s "$name" >"$work/username"
  { cat "$secret/chap" && echo "$FLEX_CLAIM_UID"; } | sha256sum | head -c 32 >"$work/password"
}

# iscsi_pv IQN: writes the Secret with this login, and the PersistentVolume.
iscsi_pv() {
  local namespace
  namespace=$(flex secret kubernetes.io/iscsi-chap "node.session.auth.username=$work/username" "node.session.auth.password=$work/password")
  flex pv "$(jq -c --arg iqn "$1" --arg name "$name" --arg namespace "$namespace" '.requests[] | select(.uid == env.FLEX_CLAIM_UID) | {
    metadata: {annotations: ({"flex-provisioner.io/secret": "\($namespace)/\($name)"}
      + if .source then {"flex-provisioner.io/clone-of": "\(.source.namespace)/\(.source.name)"} else {} end)},
    spec: ({iscsi: {targetPortal: env.FLEX_PORTAL, iqn: $iqn, lun: 1,
      fsType: (env.FLEX_FSTYPE // "ext4"), chapAuthSession: true, secretRef: {$name, $namespace}}}
      # The clone of an xfs has its UUID. The kernel mounts both on one node only with this option.
      + if .source and env.FLEX_FSTYPE == "xfs" and .volumeMode == "Filesystem" then
          {mountOptions: ((.mountOptions // []) | . + (["nouuid"] - .))}
        else {} end)}' /etc/flex/request.json)"
}

# refuse_many refuses what an iSCSI disk cannot be.
refuse_many() {
  case $FLEX_ACCESS_MODES in *Many*) flex refuse "an iSCSI disk can be used on one node only: request ReadWriteOnce" ;; esac
}

# source_of_claim prints the volume that the claim is a clone of, or none. A PV without the name of its claim is of another storage.
source_of_claim() {
  jq -r '.requests[] | select(.uid == env.FLEX_CLAIM_UID).source | if . == null then "none"
    elif .pvName == "pvc-" + .uid then .pvName else "of-another-storage" end' /etc/flex/request.json
}

# grown reports the size of the claim's volume in bytes, which the box has printed.
grown() { flex grown "$(head -c 20 "$work/said")"; }

# show_list prints the volumes in the file list, one a line.
show_list() { if [ -s "$work/list" ]; then flex list "$work/list"; else flex list; fi; }
