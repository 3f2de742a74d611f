package controller_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

const attachedISCSI = "kubernetes.io/iscsi/10.0.0.1:3260:iqn.2010-10.org.openstack:v:1"

// makesISCSI is an image whose PVs the kubelet attaches.
func makesISCSI(r *fakecluster.Run) fakecluster.Exit {
	return fakecluster.Always(spoils(func(pv *corev1.PersistentVolume) {
		pv.Spec.NFS, pv.Spec.ISCSI = nil, &corev1.ISCSIPersistentVolumeSource{TargetPortal: "10.0.0.1:3260", IQN: "iqn.2010-10.org.openstack:v", Lun: 1}
	}))(r)
}

func (w *world) setNode(change func(*corev1.Node)) {
	fakecluster.Update(w, "kubelet", fakecluster.Get[*corev1.Node](w, "", "node-1"), change)
}

func inUse(volumes ...corev1.UniqueVolumeName) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Status.VolumesInUse = volumes }
}

func (w *world) attach(claim *corev1.PersistentVolumeClaim) *storagev1.VolumeAttachment {
	return fakecluster.Create(w, fakecluster.Admin, &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-1"},
		Spec: storagev1.VolumeAttachmentSpec{
			Attacher: "example.com", NodeName: "node-1", Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: new(contract.PVName(string(claim.UID)))},
		},
	})
}

// Kubernetes releases a PV as soon as its claim no longer exists. A kubelet may have it mounted for
// longer, for ever when its pod was deleted by force.
func TestReclaimByPVWaitsUntilNoNodeHasTheVolumeAttached(t *testing.T) {
	for name, test := range map[string]struct {
		attach, detach func(*world, *corev1.PersistentVolumeClaim)
		says           string
	}{
		"by a VolumeAttachment": {
			func(w *world, claim *corev1.PersistentVolumeClaim) { w.attach(claim) },
			func(w *world, _ *corev1.PersistentVolumeClaim) {
				fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*storagev1.VolumeAttachment](w, "", "csi-1"))
			}, "the VolumeAttachment csi-1",
		},
		"by the kubelet": {
			func(w *world, _ *corev1.PersistentVolumeClaim) { w.setNode(inUse("another", attachedISCSI)) },
			func(w *world, _ *corev1.PersistentVolumeClaim) { w.setNode(inUse("another")) }, "by its status",
		},
		"by the controller": {
			func(w *world, _ *corev1.PersistentVolumeClaim) {
				w.setNode(func(n *corev1.Node) { n.Status.VolumesAttached = []corev1.AttachedVolume{{Name: attachedISCSI}} })
			},
			func(w *world, _ *corev1.PersistentVolumeClaim) {
				w.setNode(func(n *corev1.Node) { n.Status.VolumesAttached = nil })
			}, "by its status",
		},
		"until the node is out of service": {
			func(w *world, _ *corev1.PersistentVolumeClaim) { w.setNode(inUse(attachedISCSI)) },
			func(w *world, _ *corev1.PersistentVolumeClaim) {
				w.setNode(func(n *corev1.Node) {
					n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeOutOfService, Effect: corev1.TaintEffectNoExecute}}
				})
			}, "taint nodes node-1",
		},
		"until the node is deleted": {
			func(w *world, _ *corev1.PersistentVolumeClaim) { w.setNode(inUse(attachedISCSI)) },
			func(w *world, _ *corev1.PersistentVolumeClaim) {
				fakecluster.Delete(w, fakecluster.Admin, fakecluster.Get[*corev1.Node](w, "", "node-1"))
			}, "delete its Node object",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.SetUpGold(makesISCSI)
				w.CreateNode("node-1")
				w.Start()
				claim := w.provisioned("data")
				test.attach(w, claim)
				fakecluster.Delete(w, fakecluster.User, claim)
				pv := "PersistentVolume/" + contract.PVName(string(claim.UID))
				w.Advance(30 * time.Second)
				w.MustEmit(pv, "VolumeInUse", 0)
				w.Advance(time.Hour)
				w.MustRun("provision")
				w.MustEmitSome(pv, "VolumeInUse", "the node node-1", test.says)
				if n := len(w.CreatedJobs(contract.Delete)); n != 0 {
					w.T.Errorf("%d Jobs to delete it", n)
				}
				test.detach(w, claim)
				w.Until("nothing is left", 10*time.Second, w.Empty)
				w.MustRun("provision", "delete")
			})
		})
	}
}

// kube-controller-manager reports the inline volumes of any tenant's pod as attached: the caches once
// kept the first 5,000 names of a node.
func TestTheAttachmentOfAVolumeIsSeenAmongThousandsOfOthers(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(makesISCSI)
		w.CreateNode("node-1")
		w.Start()
		claim := w.provisioned("data")
		w.setNode(func(n *corev1.Node) {
			n.Status.VolumesAttached = []corev1.AttachedVolume{{Name: attachedISCSI}}
			for i := range 10_000 {
				n.Status.VolumesAttached = append(n.Status.VolumesAttached, corev1.AttachedVolume{Name: corev1.UniqueVolumeName(fmt.Sprintf("kubernetes.io/fc/[%d]", i))})
			}
		})
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Advance(time.Hour)
		w.MustRun("provision")
		w.setNode(func(n *corev1.Node) { n.Status.VolumesAttached = n.Status.VolumesAttached[1:] })
		w.Until("nothing is left", 10*time.Second, w.Empty)
		w.MustRun("provision", "delete")
	})
}

// The attachment shows between the launch of a run and its confirmation: the run waits at its gate.
func TestReclaimByPVIsNotConfirmedWhileTheVolumeIsAttached(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(makesISCSI)
		w.Start()
		claim := w.provisioned("data")
		w.NoPodFor["data"] = true
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("its delete is launched", time.Minute, func() bool { return len(w.CreatedJobs(contract.Delete)) == 1 })
		attachment := w.attach(claim)
		delete(w.NoPodFor, "data")
		w.Advance(3 * time.Minute)
		w.MustRun("provision")
		w.MustEmitSome("PersistentVolume/"+contract.PVName(string(claim.UID)), "VolumeInUse", "the VolumeAttachment csi-1")
		if pv := w.PVOf(claim); pv == nil || pv.DeletionTimestamp != nil {
			w.T.Error("the PV was deleted, although its volume is attached")
		}
		fakecluster.Delete(w, fakecluster.Admin, attachment)
		w.Until("nothing is left", 10*time.Second, w.Empty)
		w.MustRun("provision", "delete")
		if n := len(w.CreatedJobs(contract.Delete)); n != 1 {
			w.T.Errorf("%d Jobs to delete it, not the one that waited", n)
		}
	})
}

// The attachments of other volumes cost nothing: no PV of ours is looked at for them.
func TestAttachmentsOfOtherVolumesEnqueueNothing(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(makesISCSI)
		w.CreateNode("node-1")
		w.Start()
		claim := w.provisioned("data")
		w.Advance(time.Hour)
		before := w.reconciles()
		w.setNode(inUse(attachedISCSI, "another"))
		w.setNode(inUse())
		fakecluster.Delete(w, fakecluster.Admin, w.attach(claim))
		w.Advance(time.Minute)
		if n := w.reconciles() - before; n != 0 {
			w.T.Errorf("%d reconciles for a volume that is in use", n)
		}
	})
}
