//go:build e2e && everyday

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A namespace is deleted with a bound claim, one whose run is under way, one whose attempts fail,
// and one that is refused. No event can be created there any more. Nothing of them stays behind.
func TestADeletedNamespaceLeavesNoVolume(t *testing.T) {
	t.Parallel()
	w, doomed := newWorld(t, "classes"), newWorld(t, "doomed")
	class, _ := w.service(scripted(deletes+`case $FLEX_CLAIM_NAME in slow) sleep 15;; bad) exit 69;; esac`+"\n"+offer, nil))
	whole, slow, bad := doomed.claim(cinderClass, "whole"), doomed.claim(class, "slow"), doomed.claim(class, "bad")
	doomed.claim(class, "refused", func(c *corev1.PersistentVolumeClaim) { c.Spec.Selector = &metav1.LabelSelector{} })
	doomed.bound(whole)
	doomed.failed(bad, 1, toBind)
	doomed.running(slow)
	doomed.deleteNamespace(doomed.ns)
	for _, claim := range doomed.claims {
		doomed.vanished(claim)
	}
}

// claimOf waits until a claim of this name exists that is not one of the earlier ones.
func (w *world) claimOf(name string) *corev1.PersistentVolumeClaim {
	w.t.Helper()
	var claim *corev1.PersistentVolumeClaim
	w.eventually(toBind, "the claim "+name, func(ctx context.Context) (err error) {
		claim, err = kube.CoreV1().PersistentVolumeClaims(w.ns).Get(ctx, name, metav1.GetOptions{})
		for _, earlier := range w.claims {
			if err == nil && earlier.UID == claim.UID {
				return errors.New("it is an earlier one")
			}
		}
		return err
	})
	w.claims = append(w.claims, claim)
	return claim
}

// request is what a template of claims requests of a class of directories.
func request() corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{
		StorageClassName: new(directoryClass), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
}

// A StatefulSet that deletes its claims is scaled down, and up again while the volume is deleted. The
// new claim has the name of the old one, and another volume.
func TestAStatefulSetThatIsScaledDownAndUpGetsANewVolume(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "scaled")
	pod := shell("x", "", "test ! -e /data/file && echo mine >/data/file && sleep 3600", nil).Spec
	pod.RestartPolicy = corev1.RestartPolicyAlways
	pod.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
	sets, labels := kube.AppsV1().StatefulSets(w.ns), map[string]string{"app": w.ns}
	set, err := sets.Create(w.ctx(), &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{Name: "set"},
		Spec: appsv1.StatefulSetSpec{
			Replicas: new(int32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template:                             corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: pod},
			VolumeClaimTemplates:                 []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: request()}},
			PersistentVolumeClaimRetentionPolicy: &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenScaled: appsv1.DeletePersistentVolumeClaimRetentionPolicyType, WhenDeleted: appsv1.DeletePersistentVolumeClaimRetentionPolicyType},
		},
	}, metav1.CreateOptions{})
	w.must(err, "create the StatefulSet")
	first := w.claimOf("data-set-0")
	w.bound(first)
	for _, replicas := range []int32{0, 1} {
		scale, err := sets.GetScale(w.ctx(), set.Name, metav1.GetOptions{})
		w.must(err, "read the scale")
		scale.Spec.Replicas = replicas
		_, err = sets.UpdateScale(w.ctx(), set.Name, scale, metav1.UpdateOptions{})
		w.must(err, fmt.Sprintf("scale to %d", replicas))
		if replicas == 0 {
			w.claimGone(first) // the StatefulSet controller creates none while it is there
		}
	}
	second := w.claimOf("data-set-0")
	w.bound(second)
	w.vanished(first)
	w.eventually(toBind, "the new pod to run in an empty volume", func(ctx context.Context) error { return runs(ctx, w.ns, "set-0") })
	w.must(sets.Delete(w.ctx(), set.Name, metav1.DeleteOptions{}), "delete the StatefulSet")
	w.vanished(second)
}

// An ephemeral volume goes with its pod, also when the pod is deleted while the volume is made.
func TestAnEphemeralVolumeGoesWithItsPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ephemeral")
	for i, atOnce := range []bool{false, true} {
		pod := shell(fmt.Sprintf("pod-%d", i), "node2", "echo it is here >/data/file; cat /data/file", nil)
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{
			VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{Spec: request()},
		}}}}
		pod.Spec.Containers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}
		w.pod(pod)
		claim := w.claimOf(pod.Name + "-data")
		if atOnce {
			time.Sleep(500 * time.Millisecond)
		} else {
			equal(t, "what the pod said", w.output(pod.Name), "it is here\n")
		}
		w.deletePods(pod.Name)
		w.vanished(claim)
		equal(t, "nodes with the directory", w.holders(claim), "[]")
	}
}

// A node's name and its hostname differ, as in some clouds. The hostname is changed while a volume
// of the node exists: its delete waits, says so, and runs when the node has its hostname again. No
// other test finds the node so.
func TestAVolumeOfANodeFollowsItsHostname(t *testing.T) { //nolint:paralleltest // it changes a node's hostname
	w := newWorld(t, "hostname")
	rename := func(to string) { w.label("node2", corev1.LabelHostname, fmt.Sprintf("%q", to)) }
	w.whenDone(func() { rename("node2") })
	rename("ip-10-0-0-2.cloud.example")
	claim := w.claim(directoryClass, "data")
	w.pod(shell("consumer", "ip-10-0-0-2.cloud.example", "echo it is here", claim))
	equal(t, "what the consumer said", w.output("consumer"), "it is here\n")
	pv := w.bound(claim)
	equal(t, "nodes with the directory", w.holders(claim), "[node2]")
	w.deletePods("consumer")
	rename("renamed")
	w.deleteClaim(claim)
	w.event(pv, "NodeGone", "ip-10-0-0-2.cloud.example", "Remedy: ")
	rename("ip-10-0-0-2.cloud.example")
	w.vanished(claim)
	equal(t, "nodes with the directory", w.holders(claim), "[]")
}

// The zone of the selected node is none of Cinder's. The claim names it. No other test finds the
// node in that zone.
func TestAZoneThatTheStorageDoesNotKnowIsNamed(t *testing.T) { //nolint:paralleltest // it changes a node's zone
	w := newWorld(t, "zone")
	w.remove(func() { w.label("node1", corev1.LabelTopologyZone, `"zone1"`) })
	w.label("node1", corev1.LabelTopologyZone, `"mars"`)
	w.class(w.ns, firstConsumer, parameter("type", "lvm"), parameter("availability", "selected-node"))
	w.config(ownNamespace, w.ns, cinderConfig(nil))
	claim := w.selected("node1")
	w.failed(claim, 1, toBind)
	w.event(claim, "ProvisioningFailed", "mars", "exit code 78")
}
