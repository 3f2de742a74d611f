#!/bin/bash
# container.sh ROOT SCRIPT FLEX: the files of a recipe's container, with fault.sh in front of every program but bash, for a PATH that begins with
# /faults. All containers of a test run share an image beside ROOT. Its devices are its own: it never mounts the directory of the machine.
set -euo pipefail
root=$1 script=$2 flex=$3 image=${1%/*}/image

build() {
  local program name i
  mkdir -p "$image"/{bin,usr/bin,dev}
  cp /bin/bash-static "$image/bin/bash"
  cp /bin/busybox "$image/bin/"
  cp "$flex" "$image/bin/flex-itself"
  cp testdata/flex.sh "$image/bin/flex"
  chroot "$image" /bin/busybox --install -s /bin
  ../../hack/with-libraries.sh "$image" btrfs losetup setpriv # which takes the capabilities that the pod does not have
  chmod 0755 "$image/bin"/{bash,busybox,flex-itself,flex}
  mknod -m 0666 "$image/dev/null" c 1 3
  mknod "$image/dev/loop-control" c 10 237
  for i in {0..127}; do mknod "$image/dev/loop$i" b 7 "$i"; done
  ln -s /proc/self/fd "$image/dev/fd"
  mkdir "$image/faults"
  install -m 0755 testdata/fault.sh "$image/.fault"
  for program in "$image"/bin/* "$image"/usr/bin/*; do
    name=${program##*/}
    case $name in bash | busybox) ;; *) ln -f "$image/.fault" "$image/faults/$name" ;; esac
  done
}

[ -d "$image" ] || build
cp -al "$image/." "$root"
mkdir -p "$root"/{etc/flex,tmp,proc,sys,run,pvs,var/lib/flex-volumes}
cp "../../$script" "$root/provision"
chmod 0755 "$root" "$root/provision"
mount -t proc -o ro proc "$root/proc"
mount -t sysfs -o ro sysfs "$root/sys"
