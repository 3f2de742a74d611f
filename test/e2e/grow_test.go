//go:build e2e && long

package e2e

import (
	"testing"

	storagev1 "k8s.io/api/storage/v1"
)

// After a volume has grown, an initiator that logs in sees its new size, by either workflow of
// exporting it.
func TestInitiatorSeesTheGrownDisk(t *testing.T) {
	for _, api := range []string{"auto", "reserve"} { // by attachments where this Cinder makes them
		t.Run(api, func(t *testing.T) {
			w := newWorld(t, "grow")
			w.class(w.ns, parameter("type", "lvm"), parameter("attach-api", api),
				func(class *storagev1.StorageClass) { class.AllowVolumeExpansion = new(true) })
			w.config(ownNamespace, w.ns, cinderConfig(map[string]string{"verbs": "provision,delete,expand"}))
			claim := w.claim(w.ns, "data")
			pv := w.bound(claim)
			user, password := w.chap(pv)
			contains(t, "what the initiator sees", w.checkStorage(pv.Spec.ISCSI, user, password), "the disk has 1 GiB")

			w.grow(claim, "2Gi")
			equal(t, "the volume's size", w.onlyVolume(claim).Size, 2)
			contains(t, "what the initiator sees", w.checkStorage(pv.Spec.ISCSI, user, password), "the disk has 2 GiB")
		})
	}
}
