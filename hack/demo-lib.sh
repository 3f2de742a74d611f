# shellcheck shell=bash
# What demo.sh runs its steps with, and demo-claims.sh tells its story with.

kubectl() { test/cluster/kubectl.sh "$@"; }
title() { printf '\n--- %s\n' "$*"; }

# run_steps: a line each, with the time that is expected to be left. A step that fails shows the end of its log.
run_steps() {
  local i j left name first command began about="at most" last=() took=()
  [ ! -e "$TIMES" ] || { mapfile -t last <"$TIMES"; about=about; }
  for i in "${!STEPS[@]}"; do
    left=0
    for ((j = i; j < ${#STEPS[@]}; j++)); do
      IFS='|' read -r name first command <<<"${STEPS[j]}"
      ((left += ${last[j]:-$first})) || true
    done
    IFS='|' read -r name first command <<<"${STEPS[i]}"
    [ "$left" -lt 100 ] && left="$left s" || left="$(((left + 30) / 60)) min"
    printf '[%d/%d] %-32s %s %s to go: ' $((i + 1)) ${#STEPS[@]} "$name" "$about" "$left"
    began=$SECONDS
    bash -c "$command" >>"$LOG" 2>&1 || {
      printf 'failed\n'
      tail -n 20 "$LOG" >&2
      die "step $((i + 1)) failed: see $LOG"
    }
    took+=($((SECONDS - began)))
    printf 'took %d s\n' "${took[i]}"
  done
  printf '%s\n' "${took[@]}" >"$TIMES"
}

# until_ok SECONDS WHAT CMD...: poll until CMD succeeds.
until_ok() {
  local end=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || { kubectl -n demo describe pvc >&2; kubectl get pods -A -o wide >&2; die "$what: timed out"; }
    sleep 0.05
  done
}

pod() { # NAME CLAIM COMMAND [NODE]: what a pod prints that mounts a claim at /data
  kubectl -n demo apply -f - >/dev/null <<POD
apiVersion: v1
kind: Pod
metadata: {name: $1}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 0
  securityContext: {fsGroup: 65532}
  nodeSelector: {${4:+kubernetes.io/hostname: $4}}
  containers:
    - name: c
      image: localhost/flex-shell:dev
      command: [/bin/bash, -c, "$3"]
      volumeMounts: [{name: volume, mountPath: /data}]
  volumes: [{name: volume, persistentVolumeClaim: {claimName: $2}}]
POD
  until_ok 90 "the pod $1" eval "kubectl -n demo get pod $1 -o 'jsonpath={.status.phase}' | grep -q Succeeded"
  kubectl -n demo logs "$1"
}

must_be() { # WHAT WANTED GOT
  echo "$1: ${3:-none}"
  [ "$3" = "$2" ] || die "$1: not as it should be, \"$2\""
}
