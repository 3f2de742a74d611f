# shellcheck shell=bash
# What the provisioners over ssh share, which is beside them in their image.
set -euo pipefail
shopt -s inherit_errexit
ulimit -f 32768 # KiB: a box may answer without an end, and would fill the node's disk before the kubelet sees it
secret=/etc/flex/secret work=$(mktemp -d) name=${FLEX_PV_NAME:-none}

# secret_has FILE...: the Secret has these files, with a content.
secret_has() {
  for file; do [ -s "$secret/$file" ] || flex misconfigured "the Secret lacks the file $file, or it is empty"; done
}
secret_has key known_hosts
flex need box

# on_box WORD...: runs the program on-box on the host FLEX_BOX with these arguments; its input is this one's. A shell there reads the
# words, so they have only characters that no shell interprets, and no blank: each would be in the place of another. The program chooses
# the exit code, and says why. What it prints is in the file said: no limit of this pod's files holds for its log, which the node writes.
on_box() {
  local code=0 word
  for word; do
    [[ $word =~ ^[A-Za-z0-9._:/+=-]+$ ]] || flex misconfigured "names on the box may have only letters, digits, and . _ : / + = -: $word"
  done
  ssh -F none -T -i "$secret/key" -o "UserKnownHostsFile=$secret/known_hosts" -o StrictHostKeyChecking=yes -o BatchMode=yes -o IdentitiesOnly=yes \
    -o ConnectTimeout=10 -o ServerAliveInterval=10 -- "$FLEX_BOX" "set -- $*; $(<"${0%/*}/on-box")" >"$work/said" 2>"$work/log" || code=$?
  tail -c 65536 "$work/log" >&2
  case $code in
    0) return 0 ;;
    255 | 153) ;; # ssh's own, and that it was ended by the limit
    *) exit "$code" ;;
  esac
  ! grep -q "Permission denied (" "$work/log" || flex denied "the box refuses the key of the Secret"
  ! grep -q "Host key verification failed" "$work/log" || flex misconfigured "the host key of the box is not in the file known_hosts of the Secret"
  flex again "the storage does not answer; the provisioner tries again"
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
    spec: {iscsi: {targetPortal: env.FLEX_PORTAL, iqn: $iqn, lun: 1, fsType: (env.FLEX_FSTYPE // "ext4"),
      chapAuthSession: true, secretRef: {$name, $namespace}}}}' /etc/flex/request.json)"
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
