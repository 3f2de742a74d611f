//go:build e2e && long

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// The recipe docs/recipes/btrfs.md keeps the subvolume of a deleted claim, with its limit.
func TestRecipeBtrfsGivesADeletedClaimBack(t *testing.T) {
	undeletes(t, "undelete-btrfs", keeping{
		namespace: nodeNamespace, again: "node1", some: "1", none: "0",
		setUp: func(w *world) {
			w.hasBtrfs("1")
			w.class(w.ns, firstConsumer, parameter("flex-provisioner.io/config-namespace", nodeNamespace))
			w.copyOf(w.exampleConfig("btrfs", "btrfs"), func(data map[string]string) { data["keep-deleted"] = "168h" })
		},
		has: func(w *world, claim *corev1.PersistentVolumeClaim) string {
			return w.mustOnNode("1", "find /var/lib/flex-volumes/.btrfs -maxdepth 1 -name pvc-"+string(claim.UID)+" | wc -l")
		},
	})
}
