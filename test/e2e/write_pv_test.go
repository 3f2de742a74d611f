//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// offers is a config whose container has no access to the cluster: it says where the volume is, and
// the dispatcher writes the PV.
func offers(words string) map[string]string {
	return scripted(deletes+fmt.Sprintf(`echo "%s" >/dev/termination-log`, strings.ReplaceAll(words, `"`, `\"`)), nil)
}

func TestDispatcherWritesThePVOfAContainerWithoutAToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "offer")
	w.class(w.ns)
	w.config(ownNamespace, w.ns, offers(`{"source": {"nfs": {"server": "10.250.0.9", "path": "/exports/$FLEX_PV_NAME"}}, "capacity": "2Gi"}`))
	claim := w.claim(w.ns, "data")
	pv := w.bound(claim)
	equal(t, "the server", pv.Spec.NFS.Server, "10.250.0.9")
	equal(t, "the path", pv.Spec.NFS.Path, "/exports/"+pv.Name)
	equal(t, "the capacity", pv.Spec.Capacity.Storage().String(), "2Gi")
	pod := w.onlyPod(w.onlyJob(claim, "provision"))
	equal(t, "a token is mounted", *pod.Spec.AutomountServiceAccountToken, false)
	for _, v := range pod.Spec.Volumes {
		equal(t, "the volume "+v.Name+" is projected", v.Projected != nil, false)
	}
	w.deleteClaim(claim)
	w.vanished(claim)
}

// A described PV that is not allowed is refused before admission would, and an event of the claim
// says why and what to do.
func TestDescribedPVOfANodesDirectoryIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "refused")
	w.class(w.ns)
	w.config(ownNamespace, w.ns, offers(`{"source": {"hostPath": {"path": "/"}}}`))
	w.event(w.claim(w.ns, "data"), "ProvisioningFailed", "the directory / of a node", "--allow")

	deeper := w.ns + "-deeper"
	w.class(deeper, parameter("flex-provisioner.io/config-namespace", nodeNamespace))
	w.config(nodeNamespace, deeper, offers(`{"source": {"local": {"path": "`+volumesFolder+`/$FLEX_PV_NAME/deeper"}}}`))
	claim := w.claim(deeper, "deeper")
	own := volumesFolder + "/pvc-" + string(claim.UID)
	w.event(claim, "ProvisioningFailed", "the directory "+own+"/deeper of a node, which must be "+own+":", "Remedy: ")
}

// A provisioning pod may write the PV of its own claim and no other, and only with the sources that
// its namespace allows.
func TestPodWritesOnlyThePVOfItsOwnClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "pv-policy")
	const uid, other = "11111111-2222-3333-4444-555555555555", "99999999-2222-3333-4444-555555555555"
	script := `try() { kubectl create -o name -f - 2>&1 <<E || true
{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"pvc-$1","annotations":{"flex-provisioner.io/claim-uid":"$1"}},
 "spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"storageClassName":"$4","hostPath":{"path":"$2","type":"Directory"},
 "claimRef":{"namespace":"default","name":"c","uid":"$3"}}}
E
}
try OTHER /var/lib/flex-volumes/pvc-OTHER OTHER x
try UID /var/lib/flex-volumes/pvc-UID OTHER x
try UID /etc UID x
try UID /var/lib/flex-volumes/pvc-UID/link UID x
try UID /var/lib/flex-volumes/pvc-UID UID ''
try UID /var/lib/flex-volumes/pvc-UID UID x`
	script = strings.NewReplacer("UID", uid, "OTHER", other).Replace(script)
	printed := w.runAs("flex-provisioner-node", "provision-"+uid+"-1-abcde", "directory-provisioner", script)
	w.remove(func() {
		w.gone(kube.CoreV1().PersistentVolumes().Delete(w.ctx(), "pvc-"+uid, metav1.DeleteOptions{}), "the PV")
	})
	said := strings.Split(strings.TrimSpace(printed), "\n")
	want := []string{
		"only the PersistentVolume of its own claim", "must name its claim by UID", "must be /var/lib/flex-volumes/pvc-UID",
		"must be /var/lib/flex-volumes/pvc-UID", "must name its storage class", "persistentvolume/pvc-" + uid,
	}
	if len(said) != len(want) {
		t.Fatalf("the pod said %q", said)
	}
	for i, words := range want {
		contains(t, fmt.Sprintf("attempt %d", i+1), said[i], words)
	}
}

// runAs runs a script to its end, in a pod with a ServiceAccount, and returns what it printed. The
// pod has the gate that every provisioning pod must be created with, and is released at once.
func (w *world) runAs(namespace, name, account, script string) string {
	w.t.Helper()
	there := *w
	there.ns = namespace
	pod := shell(name, "", script, nil)
	pod.Spec.ServiceAccountName = account
	pod.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "HOME", Value: "/tmp"}}
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: confirmGate}}
	harden(&pod.Spec)
	there.pod(pod)
	w.remove(func() {
		w.gone(kube.CoreV1().Pods(namespace).Delete(w.ctx(), name, metav1.DeleteOptions{}), "the pod "+name)
	})
	_, err := kube.CoreV1().Pods(namespace).Patch(w.ctx(), name, types.MergePatchType, []byte(`{"spec":{"schedulingGates":null}}`), metav1.PatchOptions{})
	w.must(err, "remove the gate of the pod "+name)
	return there.output(name)
}
