package test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Earlier images wrote readOnly into the source, which no node reads. The page's command lists these
// PVs, and what it prints for one is pasted into a shell.
func TestTheUpgradePageListsThePVsThatNodesWouldWriteTo(t *testing.T) {
	ours := map[string]string{"pv.kubernetes.io/provisioned-by": "flex-provisioner.io"}
	pv := func(name string, source corev1.PersistentVolumeSource, mode corev1.PersistentVolumeAccessMode, options ...string) corev1.PersistentVolume {
		return corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: ours}, Spec: corev1.PersistentVolumeSpec{
			PersistentVolumeSource: source, AccessModes: []corev1.PersistentVolumeAccessMode{mode}, MountOptions: options,
			ClaimRef: &corev1.ObjectReference{Namespace: "app", Name: "data"},
		}}
	}
	const readers, one = corev1.ReadOnlyMany, corev1.ReadWriteOnce
	iscsi := corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{FSType: "xfs", ReadOnly: true}}
	fc := corev1.PersistentVolumeSource{FC: &corev1.FCVolumeSource{}}
	marked := corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{FSType: "ext4", ReadOnly: true}}
	writable := corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{FSType: "ext4"}}
	flex := corev1.PersistentVolumeSource{FlexVolume: &corev1.FlexPersistentVolumeSource{ReadOnly: true}}
	block, other := pv("block", marked, one), pv("other", fc, readers)
	block.Spec.VolumeMode, other.Annotations = new(corev1.PersistentVolumeBlock), nil
	broken := pv("broken", fc, readers)
	broken.Spec.ClaimRef.Name = "a\nb"
	got := listed(t, corev1.PersistentVolumeList{Items: []corev1.PersistentVolume{
		pv("iscsi", iscsi, readers, "rw", "it's"), pv("fc", fc, readers), pv("marked", marked, one), pv("flex", flex, one), block, broken,
		pv("later", fc, readers, "ro", "noload"), pv("writable", writable, one), other,
		pv("nfs", corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{}}, readers),
	}})
	const claim, noLoad = `# the claim "data" in "app"`, ` --type=merge --patch='{"spec":{"mountOptions":["ro","noload"]}}'`
	want := strings.Join([]string{
		claim, `kubectl patch pv iscsi --type=merge --patch='{"spec":{"mountOptions":["it'\''s","ro","norecovery"]}}'`,
		claim, "kubectl patch pv fc" + noLoad, claim, "kubectl patch pv marked" + noLoad,
		claim, "# flex: by its pods", claim, "# block: by its pods",
		`# the claim "a\nb" in "app"`, "kubectl patch pv broken" + noLoad, "",
	}, "\n")
	if got != want {
		t.Errorf("the command lists\n%swant\n%s", got, want)
	}
}

// listed returns what the command of the page prints where these PVs exist.
func listed(t *testing.T, pvs corev1.PersistentVolumeList) string {
	t.Helper()
	command := regexp.MustCompile("(?s)```\n(kubectl get pv -o json .*?)```").FindStringSubmatch(content(t, "docs/upgrade.md"))
	if command == nil {
		t.Fatal("docs/upgrade.md has no command that lists PVs")
	}
	text, err := json.Marshal(pvs)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "pvs.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "bash", "-c", "kubectl() { cat "+file+"; }\n"+command[1]).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}
