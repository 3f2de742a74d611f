#!/bin/bash
# container.sh ROOT SCRIPT FLEX: the files of a recipe's container, with fault.sh in front of every program but bash, for a PATH that begins with
# /faults. All containers of a test run share an image beside ROOT. Its devices are its own: it never mounts the directory of the machine.
set -euo pipefail
root=$1 script=$2 flex=$3 image=${1%/*}/image

build() {
  local program name i
  mkdir -p "$image"/{dev,faults}
  ../../hack/with-libraries.sh "$image" btrfs flock jq losetup setpriv # which takes the capabilities that the pod does not have
  install -m 0755 /bin/bash-static "$image/bin/bash"
  install -m 0755 /bin/busybox "$flex" "$image/bin"
  chroot "$image" /bin/busybox --install -s /bin
  mknod -m 0666 "$image/dev/null" c 1 3
  mknod "$image/dev/loop-control" c 10 237
  for i in {0..127}; do mknod "$image/dev/loop$i" b 7 "$i"; done
  ln -s /proc/self/fd "$image/dev/fd"
  install -m 0755 testdata/fault.sh "$image/.fault"
  for program in "$image"/bin/*; do
    name=${program##*/}
    case $name in bash | busybox) ;; *) ln -f "$image/.fault" "$image/faults/$name" ;; esac
  done
}

[ -d "$image" ] || build
cp -al "$image/." "$root"
mkdir -p "$root"/{etc/flex,tmp,proc,sys,run,var/lib/flex-volumes,var/run/secrets/kubernetes.io/serviceaccount}
cp "../../$script" "$root/provision"
chmod 0755 "$root" "$root/provision"
mount -t proc -o ro proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
