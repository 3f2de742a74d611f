//go:build e2e && long

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// exchangePortals writes what Cinder is to take for the first portal of the backend lvmmp, and for the
// second.
func (w *world) exchangePortals(from, to string) {
	w.t.Helper()
	w.must(script(w.ctx(), "../cinder/service.sh", "stop", "cinder"), "stop Cinder")
	path := filepath.Join(labState(), "cinder", "conf", "cinder.conf")
	text, err := os.ReadFile(path)
	w.must(err, "read Cinder's configuration")
	if strings.Count(string(text), from) != 1 {
		w.t.Fatalf("%s does not have %q once", path, from)
	}
	w.must(os.WriteFile(path, []byte(strings.Replace(string(text), from, to, 1)), 0o600), "write Cinder's configuration")
	w.must(startCinder(w.ctx()), "start Cinder")
}

// A storage's portal gets another address, and the old one no longer answers. A claim of the same
// name takes the volume of the retained PV, which is exported anew: its pod reads the data. No other
// test runs meanwhile, since they use the old portal.
func TestAClaimReachesItsDataAfterThePortalHasMoved(t *testing.T) { //nolint:paralleltest // see above
	w := newWorld(t, "refresh")
	w.class(w.ns, parameter("type", "lvmmp"))
	config := w.config(ownNamespace, w.ns, cinderConfig(nil))
	claim := w.claim(w.ns, "data")
	old := w.bound(claim)
	equal(t, "the portal", old.Spec.ISCSI.TargetPortal, "10.250.0.1:3260")
	w.read(claim, "node1", "echo before >/data/file")

	const first, second = "iscsi_secondary_ip_addresses = 10.250.0.2", "iscsi_secondary_ip_addresses = 10.250.0.1\ntarget_ip_address = 10.250.0.2"
	w.exchangePortals(first, second)
	t.Cleanup(func() { w.exchangePortals(second, first) })
	for _, node := range nodes {
		rule := []string{"OUTPUT", "-p", "tcp", "-d", "10.250.0.1", "--dport", "3260", "-j", "REJECT", "--reject-with", "tcp-reset"}
		_, err := onNode(w.ctx(), node, append([]string{"iptables", "-I"}, rule...)...)
		w.must(err, "close the old portal")
		t.Cleanup(func() { _, _ = onNode(context.Background(), node, append([]string{"iptables", "-D"}, rule...)...) })
		if _, err := onNode(w.ctx(), node, "timeout", "3", "bash", "-c", "exec 3<>/dev/tcp/10.250.0.1/3260"); err == nil {
			t.Fatal("the old portal answers")
		}
	}

	w.patchPV(old.Name, `{"spec":{"persistentVolumeReclaimPolicy":"Retain"}}`)
	w.deleteClaim(claim)
	w.claimGone(claim)
	w.eventually(toBind, "the PV to be released", func(ctx context.Context) error { return pvPhase(ctx, claim, corev1.VolumeReleased) })
	w.edit(config, cinderConfig(map[string]string{"adopt": w.ns + "/data: " + old.Annotations["flex-provisioner.io/cinder-volume-id"]}))
	again := w.claim(w.ns, "data")
	made := w.bound(again)
	equal(t, "the portal", made.Spec.ISCSI.TargetPortal, "10.250.0.2:3260")
	w.event(&w.jobs(again, "provision")[0], "ContainerOutput", "has left PersistentVolume "+old.Name, "iscsi.targetPortal was 10.250.0.1:3260, is 10.250.0.2:3260")
	equal(t, "the file on the other node", w.read(again, "node2", "cat /data/file"), "before\n")

	w.patchPV(made.Name, `{"spec":{"persistentVolumeReclaimPolicy":"Delete"}}`)
	w.deleteClaim(again)
	w.vanished(again)
	w.gone(kube.CoreV1().PersistentVolumes().Delete(w.ctx(), old.Name, metav1.DeleteOptions{}), "the retained PV")
	w.gone(kube.CoreV1().Secrets(ownNamespace).Delete(w.ctx(), old.Name, metav1.DeleteOptions{}), "its Secret")
}
