#!/bin/bash
# prepare.sh DIR: in a node's mount namespace, before its kubelet starts. The folders in which a kernel with an initiator shows sessions and disks
# become the node's own, and writable. DIR is a folder on a tmpfs.
set -euo pipefail
dir=${1:?the folder}
mkdir -p "$dir/upper" "$dir/work"
mount -t overlay overlay -o "lowerdir=/sys/class,upperdir=$dir/upper,workdir=$dir/work" /sys/class
mkdir -p /sys/class/iscsi_host /sys/class/scsi_host /dev/disk
mount -t tmpfs -o mode=755 tmpfs /dev/disk
mkdir -p /dev/disk/by-path
