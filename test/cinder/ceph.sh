# shellcheck shell=bash
# Ceph: one mon, one mgr, one osd (BlueStore in a sparse file), cephx for every client. Source it after services.sh.

in_ceph() {
  in_rootfs sh -euc "cd /lab/state/ceph; $1" >>"$CINDER_STATE/log/ceph-create.log" 2>&1 || fails_to_start ceph-create
}

start_ceph() {
  local new=
  [ -e "$CINDER_STATE/ceph/created" ] || new=1
  [ -z "$new" ] || make_monitor
  start_service ceph-mon ceph-mon -i a -f
  wait_for ceph-mon listening 6789
  [ -z "$new" ] || make_keys
  start_service ceph-mgr ceph-mgr -i a -f
  [ -z "$new" ] || make_osd
  start_service ceph-osd ceph-osd -i 0 -f
  [ -z "$new" ] || make_pool
  # Until the statistics are in, Cinder would see a pool without room.
  wait_for ceph-osd in_rootfs sh -c "ceph df --format json | grep -q '\"max_avail\":[1-9]'"
  touch "$CINDER_STATE/ceph/created"
}

make_monitor() {
  rm -rf --one-file-system "${CINDER_STATE:?}/ceph"
  mkdir -p "$CINDER_STATE"/ceph/{mon,mgr,osd,run}
  sed -e "s|@ADDR@|$LAB_ADDR|g; s|@NET@|$LAB_ADDR/24|g; s|@FSID@|$(cat /proc/sys/kernel/random/uuid)|" \
    -e "s|@OSD_UUID@|$(cat /proc/sys/kernel/random/uuid)|" "$CINDER_SRC/conf/ceph.conf.in" \
    >"$CINDER_STATE/ceph/ceph.conf"
  # shellcheck disable=SC2016 # for the shell in the chroot
  in_ceph '
    ceph-authtool --create-keyring mon.keyring --gen-key -n mon. --cap mon "allow *"
    ceph-authtool --create-keyring client.admin.keyring --gen-key -n client.admin \
      --cap mon "allow *" --cap osd "allow *" --cap mgr "allow *"
    ceph-authtool mon.keyring --import-keyring client.admin.keyring
    monmaptool --create --addv a "[v2:$LAB_ADDR:3300,v1:$LAB_ADDR:6789]" \
      --fsid "$(sed -n "s/^fsid = //p" ceph.conf)" monmap
    ceph-mon --mkfs -i a --monmap monmap --keyring mon.keyring'
}

# Cinder's own user may touch its pool and nothing else; the same key is what a client of a volume needs.
make_keys() {
  # shellcheck disable=SC2016 # for the shell in the chroot
  in_ceph '
    ceph osd new "$(sed -n "s/^osd_uuid = //p" ceph.conf)"
    ceph auth get-or-create mgr.a mon "allow profile mgr" osd "allow *" -o mgr.a.keyring
    ceph auth get-or-create osd.0 mon "allow profile osd" mgr "allow profile osd" osd "allow *" -o osd.0.keyring
    ceph auth get-or-create client.cinder mon "profile rbd" osd "profile rbd pool=volumes" \
      mgr "profile rbd pool=volumes" -o client.cinder.keyring'
}

make_osd() { in_ceph 'ceph-osd -i 0 --mkfs'; }

make_pool() {
  in_ceph '
    ceph config set mon auth_expose_insecure_global_id_reclaim false
    ceph osd pool create volumes 8 8 replicated
    rbd pool init volumes'
}
