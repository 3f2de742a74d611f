# shellcheck shell=bash
# The services one by one: how each is configured, started and stopped. Source it after common.sh.

CINDER_API=http://$LAB_ADDR:8776/v3
KEYSTONE_API=http://$LAB_ADDR:5000/v3
export CINDER_API KEYSTONE_API

random_word() { head -c 18 /dev/urandom | base64 | tr '+/' 'xy'; }

# fill_in FILE...: the templates' @NAME@s.
fill_in() {
  sed -e "s|@MODE@|$MODE|; s|@BACKENDS@|$BACKENDS|; s|@DEFAULT_TYPE@|${BACKENDS%%,*}|; s|@ZONE_FALLBACK@|$ZONE_FALLBACK|" \
    -e "s|@NVMET@|$([ "$CINDER" = 17 ] && echo nvmet_rdma || echo nvmet_tcp)|" \
    -e "s|@FILTERS@|$([ "$FILTERS" = file ] && echo resource_filters.json || echo no-filters.json)|" \
    -e "s|@NEW_DEFAULTS@|$([ "$MODE" != keystone ] || echo "enforce_new_defaults = true")|" \
    -e "s|@ADDR@|$LAB_ADDR|g; s|@ADDR2@|$LAB_ADDR2|g; s|@SERVICE_PASSWORD@|$(cat "$CINDER_STATE/secrets/service")|" "$@"
}

# make_state: what the services need below $CINDER_STATE; what is there is kept.
make_state() {
  local name
  umask 077 # everything here is the administrator's
  mkdir -p "$CINDER_STATE"/{conf,ceph,tmp,run/tgtd,pids,log,secrets} \
    "$CINDER_STATE"/cinder/{volumes,lock,coordination} "$CINDER_STATE/keystone"
  printf '127.0.0.1 localhost\n%s %s %s\n' "$LAB_ADDR" "$LAB_NETNS" "$(uname -n)" >"$CINDER_STATE/hosts"
  for name in service admin demo; do
    [ -s "$CINDER_STATE/secrets/$name" ] || random_word >"$CINDER_STATE/secrets/$name"
  done
  fill_in "$CINDER_SRC/conf/cinder.conf.in" >"$CINDER_STATE/conf/cinder.conf"
  fill_in "$CINDER_SRC/conf/keystone.conf.in" >"$CINDER_STATE/conf/keystone.conf"
  for name in cinder keystone; do
    [ -s "$CINDER_STATE/$name/$name.sqlite" ] || cp "$CINDER_ROOTFS/lab/db/$name.sqlite" "$CINDER_STATE/$name/"
  done
}

# start_service NAME CMD...: in the chroot, logs to $CINDER_STATE/log/NAME.log.
start_service() {
  local name=$1
  shift
  lab_start "$CINDER_STATE" "$name" "${IN_ROOTFS[@]}" "$@"
}

running() { [ -e "$CINDER_STATE/pids/$1" ] && alive "$(cat "$CINDER_STATE/pids/$1")"; }

# fails_to_start NAME: prints the end of its log, which usually says why, and ends.
fails_to_start() {
  tail -n 20 "$CINDER_STATE/log/$1.log" >&2
  die "$1 did not start; all of its log: $CINDER_STATE/log/$1.log"
}

# wait_for NAME CMD...: until the command succeeds; at once an error if the service has ended.
wait_for() {
  local name=$1 deadline=$((SECONDS + 120))
  shift
  until "$@" >/dev/null 2>&1; do
    { running "$name" && [ "$SECONDS" -lt "$deadline" ]; } || fails_to_start "$name"
    sleep 0.1
  done
}

listening() { in_control bash -c ": </dev/tcp/$LAB_ADDR/$1"; }

start_tgtd() {
  start_service tgtd /usr/sbin/tgtd -f --iscsi "portal=$LAB_ADDR:3260,portal=$LAB_ADDR2:3260"
  wait_for tgtd listening 3260
  # Cinder wrote a file per target; after a restart tgtd learns them again from there.
  [ -z "$(ls "$CINDER_STATE/cinder/volumes")" ] || in_rootfs tgt-admin --execute
}

start_keystone() {
  [ -d "$CINDER_STATE/keystone/fernet-keys" ] || bootstrap_keystone
  start_service keystone /usr/bin/uwsgi --plugin python3 --http-socket "$LAB_ADDR:5000" \
    --wsgi-file /lab/src/tools/keystone_app.py --master --processes 1 --threads 8 --enable-threads --lazy-apps \
    --need-app --die-on-term --buffer-size 65535 --rem-header Content-Length --listen 100
  wait_for keystone in_control curl -sf -o /dev/null "$KEYSTONE_API"
}

bootstrap_keystone() {
  in_rootfs sh /lab/src/tools/bootstrap_keystone.sh >>"$CINDER_STATE/log/keystone-bootstrap.log" 2>&1 ||
    { tail -n 20 "$CINDER_STATE/log/keystone-bootstrap.log" >&2; die "keystone's first start failed"; }
}

start_cinder() {
  start_service cinder /usr/bin/python3 /lab/src/drivers/cinder_all.py --config-file /lab/state/conf/cinder.conf
  wait_for cinder listening 8776
  in_rootfs python3 /lab/src/tools/setup_cinder.py || fails_to_start cinder
}

# oslo.service takes seconds to end gracefully, INT ends it at once; tgtd ignores TERM as long as it has targets, and
# keeps nothing that KILL could damage.
stop_service() {
  case $1 in
  cinder) lab_stop "$CINDER_STATE" cinder INT ;;
  tgtd) lab_stop "$CINDER_STATE" tgtd KILL ;;
  *) lab_stop "$CINDER_STATE" "$1" ;;
  esac
}
