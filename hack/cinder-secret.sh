#!/bin/bash
# cinder-secret.sh: writes the Secret "cinder", by which the examples' config logs in, for the Cinder that is up: the classic
# configuration without keystone, or what the lab's openrc file says. CINDER_LOGIN=openrc.application-credential names another.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
# shellcheck source=../test/lab.sh
. test/lab.sh

openrc=$LAB_STATE/cinder/${CINDER_LOGIN:-openrc}

# keys: the openrc's variables by the names that they have in a cloud config.
keys() {
  local name value
  while IFS='=' read -r name value; do
    case $name in
    OS_CINDER_ENDPOINT) name=cinder-endpoint ;;
    OS_AUTH_URL) name=auth-url ;;
    OS_REGION_NAME) name=region ;;
    OS_USERNAME) name=username ;;
    OS_PASSWORD) name=password ;;
    OS_PROJECT_NAME) name=tenant-name ;;
    OS_USER_DOMAIN_ID) name=user-domain-id ;;
    OS_PROJECT_DOMAIN_ID) name=tenant-domain-id ;;
    OS_APPLICATION_CREDENTIAL_ID) name=application-credential-id ;;
    OS_APPLICATION_CREDENTIAL_SECRET) name=application-credential-secret ;;
    *) continue ;;
    esac
    printf '    %s="%s"\n' "$name" "$value"
  done
}

# A Cinder without keystone checks no password. This one exists so that a test can search for it everywhere.
password() { printf '    password="%s"\n' "$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')"; }

cloud_conf() {
  if [ ! -e "$openrc" ]; then # Cinder may come up later
    keys <<<"OS_CINDER_ENDPOINT=http://$LAB_ADDR:8776/v3"$'\n'"OS_PROJECT_NAME=admin"
  else
    keys <"$openrc"
  fi
  grep -qs '^OS_AUTH_URL=' "$openrc" || password
}

test/cluster/kubectl.sh apply -f - >/dev/null <<SECRET
apiVersion: v1
kind: Secret
metadata: {name: cinder, namespace: flex-provisioner}
stringData:
  cloud.conf: |
    [Global]
$(cloud_conf)
SECRET
