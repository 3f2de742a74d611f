//go:build e2e && long

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"
)

// walksByPath is the bash provisioner, except that it deletes by busybox's rm, which names each
// file by its path.
func walksByPath() map[string]string {
	return map[string]string{
		"image": bashImage, "verbs": "provision,delete", "service-account-name": "directory-provisioner",
		"run-on": "selected-node", "base-dir": volumesFolder,
		"pod-template": `
spec:
  securityContext: {runAsNonRoot: false, runAsUser: 0, runAsGroup: 0}
  containers:
    - name: provisioner
      command:
        - /bin/bash
        - -c
        - |
          [ "$0" != delete ] || exec busybox rm -rf -- "$FLEX_BASE_DIR/$FLEX_PV_NAME"
          exec /provision "$0"
      securityContext:
        capabilities: {drop: [ALL], add: [DAC_OVERRIDE, FOWNER]}
      volumeMounts:
        - {name: volumes, mountPath: /var/lib/flex-volumes}
  volumes:
    - name: volumes
      hostPath: {path: /var/lib/flex-volumes, type: DirectoryOrCreate}
`,
	}
}

// The attack of TestDeleteReachesNoOtherVolumeByLinksThatAPodSwaps succeeds where an image deletes
// by path. It reaches the one victim that it names, so that other tests may run meanwhile.
func TestLinksThatAPodSwapsLeadADeleteByPathToOtherVolumes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "by-path")
	w.class(w.ns, firstConsumer, parameter("flex-provisioner.io/config-namespace", nodeNamespace))
	w.config(nodeNamespace, w.ns, walksByPath())
	victim, file := w.victim()
	for i := range 5 {
		claim := w.claim(w.ns, fmt.Sprintf("attacker-%d", i))
		w.swapsWhileDeleted(claim, victim)
		w.deletePods(claim.Name)
		w.vanished(claim)
		if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
	t.Error("the victim has its file still: is the attack too weak to show anything?")
}
