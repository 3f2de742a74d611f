//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kubelet's own Fibre Channel plugin finds a disk by nothing but a link in /dev/disk that udev
// names after what the PV says: the port and the LUN, or the disk's own name where a PV cannot name
// the LUN. There is no adapter here, so a loop device over Cinder's own file of the volume stands
// for the disk, and the test makes the link. The rest is the kubelet's: search, file system, mount,
// unmount and the release of the device.
func TestFibreChannelVolumeIsMountedByTheKubeletsOwnPlugin(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ lun, fsType string }{
		"by port and LUN":        {"7", "xfs"},
		"by the disk's own name": {"300", "ext4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "fc")
			w.class(w.ns, parameter("type", "fc"), parameter("connection", "fibre_channel"), parameter("fsType", tc.fsType),
				parameter("volume-metadata", "lab-lun="+tc.lun))
			w.config(ownNamespace, w.ns, cinderConfig(map[string]string{"wwpns": "50:01:43:80:18:6b:3f:64", "wwnns": "50:01:43:80:18:6b:3f:65"}))
			claim := w.claim(w.ns, "data")
			links := w.linksOf(w.bound(claim).Spec.FC, tc.lun)
			file := filepath.Join(labState(), "cinder", "cinder", "files", "fc", "volume-"+w.onlyVolume(claim).ID)

			loop := w.plug("1", file, links)
			contains(t, "the mount", w.read(claim, "node1", "echo from node1 >/data/file; grep ' /data ' /proc/mounts"), " "+tc.fsType+" ")
			w.unplug("1", loop, links)

			w.pod(writable(shell("reader", "node2", "cat /data/file", claim)))
			pod, err := kube.CoreV1().Pods(w.ns).Get(w.ctx(), "reader", metav1.GetOptions{})
			w.must(err, "read the pod")
			w.eventWithin(toMount, pod, "FailedMount", "no fc disk found")
			loop = w.plug("2", file, links)
			equal(t, "the file on the other node", w.output("reader"), "from node1\n")
			w.deletePods("reader")
			w.unplug("2", loop, links)
			w.deleteClaim(claim)
			w.vanished(claim)
		})
	}
}

// linksOf returns the names that udev gives to the disk that a PV describes: one for each port, or
// that of the disk. The kubelet searches by every port of the PV. Without a multipath device it
// takes what it has found by the last one, and only that.
func (w *world) linksOf(source *corev1.FCVolumeSource, lun string) []string {
	w.t.Helper()
	if source == nil {
		w.t.Fatal("the PV has no fc source")
	}
	var links []string
	for _, port := range source.TargetWWNs {
		equal(w.t, "the PV's LUN", fmt.Sprint(*source.Lun), lun)
		links = append(links, "/dev/disk/by-path/pci-0000:01:00.0-fc-0x"+port+"-lun-"+lun)
	}
	for _, disk := range source.WWIDs {
		links = append(links, "/dev/disk/by-id/scsi-"+disk)
	}
	return links
}

// plug makes a disk of a file and its links appear on a node, and returns the disk.
func (w *world) plug(node, file string, links []string) string {
	w.t.Helper()
	loop, err := onNode(w.ctx(), node, "losetup", "--find", "--show", file)
	w.must(err, "make a disk of "+file)
	w.remove(func() { // where the test has failed; by then the file is deleted, and so called
		_, _ = onNode(w.ctx(), node, "bash", "-c", `[[ $(losetup -nO BACK-FILE "$1") != "$2"* ]] || losetup -d "$1"`, "unplug", loop, file)
	})
	for _, link := range links {
		_, err := onNode(w.ctx(), node, "bash", "-ec", `mkdir -p "${2%/*}"; ln -sfn "$1" "$2"`, "plug", loop, link)
		w.must(err, "make the link "+link)
	}
	return loop
}

// unplug waits until the kubelet has unmounted a disk, and takes it away.
func (w *world) unplug(node, loop string, links []string) {
	w.t.Helper()
	w.eventually(toMount, "node"+node+" to have unmounted "+loop, func(ctx context.Context) error {
		mounts, err := onNode(ctx, node, "cat", "/proc/mounts")
		if err == nil && strings.Contains(mounts, loop+" ") {
			err = fmt.Errorf("it is mounted: %s", mounts)
		}
		return err
	})
	_, err := onNode(w.ctx(), node, append([]string{"rm"}, links...)...)
	w.must(err, "remove the links")
	_, err = onNode(w.ctx(), node, "losetup", "-d", loop)
	w.must(err, "take the disk away")
}
