#!/bin/bash
# Stands in front of every program that a script calls, under the program's name. With FAULT="N:killed before" the Nth call kills the script and all of its
# processes; with FAULT=N:failure the call fails; with FAULT=N:pause it waits until there is a file /faults/continue.
name=${0##*/}
n=$(($(</faults/count) + 1))
echo $n >/faults/count
[ "${FAULT%%:*}" = $n ] || exec "/bin/$name" "$@"
echo "$name $*" >/faults/hit
if [ "${FAULT#*:}" = pause ]; then
  until [ -e /faults/continue ]; do /bin/sleep 0.1; done
  exec "/bin/$name" "$@"
fi
[ "${FAULT#*:}" = failure ] || kill -KILL 0
exit 1
