#!/bin/sh
# Keystone's first start, in the chroot: keys, and its own administrator and endpoint.
set -eu
umask 077
new_key() { head -c 32 /dev/urandom | base64 | tr '+/' '-_' | tr -d '\n'; }
# What fernet_setup and credential_setup make (0: next key, 1: the key in use), without two more starts of Python.
for dir in fernet-keys credential-keys; do
  mkdir -p "/var/lib/keystone/$dir.new"
  new_key >"/var/lib/keystone/$dir.new/0"
  new_key >"/var/lib/keystone/$dir.new/1"
  mv "/var/lib/keystone/$dir.new" "/var/lib/keystone/$dir"
done
url=http://$LAB_ADDR:5000/v3
OS_BOOTSTRAP_PASSWORD=$(cat /lab/state/secrets/admin) keystone-manage --config-file /lab/state/conf/keystone.conf \
  bootstrap --bootstrap-project-name admin --bootstrap-region-id RegionOne \
  --bootstrap-public-url "$url" --bootstrap-internal-url "$url" --bootstrap-admin-url "$url"
