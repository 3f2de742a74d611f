package controller_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// fromBackup is a change of a claim: it was bound where the backup was made. asked is the provisioner
// that was asked for its volume there.
func fromBackup(asked string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Annotations = map[string]string{fakecluster.AnnBindCompleted: "yes", fakecluster.AnnStorageProvisioner: asked}
	}
}

func TestNothingIsProvisionedForALostClaim(t *testing.T) {
	for name, change := range map[string]func(*storagev1.StorageClass){
		"bound at once":            func(*storagev1.StorageClass) {},
		"bound with its first pod": fakecluster.WaitForFirstConsumer,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
				w.CreateNode("node-1")
				w.Choices = []string{"node-1"}
				w.CreateClass("gold", corev1.PersistentVolumeReclaimDelete, change)
				w.CreateServiceAccount("true")
				w.CreateConfig("gold", "gold")
				w.Start()
				claim := w.CreateClaim("data", fromBackup(contract.ProvisionerName))
				w.Advance(24 * time.Hour)
				w.MustCreateNoJob()
				w.MustEmitSome(onData, "ClaimLost", "pv.kubernetes.io/bind-completed", "kubectl -n app annotate pvc data", "docs/operate.md#volumes-that-are-kept")
				if phase := w.Claim("data").Status.Phase; phase != corev1.ClaimLost {
					w.T.Errorf("the claim is %s", phase)
				}
				fakecluster.Update(w, fakecluster.User, claim, func(c *corev1.PersistentVolumeClaim) { delete(c.Annotations, fakecluster.AnnBindCompleted) })
				w.Until("it is served as the event says, though its phase is still Lost", time.Minute, w.IsBound("data"))
			})
		})
	}
}

func TestALostClaimOfAnotherProvisionerIsLeftAlone(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Start()
		w.CreateClaim("data", fromBackup("example.com/theirs"))
		w.Advance(time.Hour)
		if len(w.CreatedJobs("")) != 0 || len(w.Events.About("", "")) != 0 {
			w.T.Error("a Job or an event\n" + w.Story())
		}
	})
}

// A claim gets the annotation while its volume is made: the run ends, and its volume goes with the
// claim.
func TestTheVolumeOfAClaimThatIsLostMeanwhileGoesWithTheClaim(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works)
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Takes: time.Minute, Does: fakecluster.Halfway(75)}
		w.Start()
		claim := w.CreateClaim("data")
		w.Until("its pod runs", time.Minute, func() bool { return len(w.RunningPods()) == 1 })
		fakecluster.Update(w, fakecluster.User, claim, func(c *corev1.PersistentVolumeClaim) { fakecluster.Annotate(c, fakecluster.AnnBindCompleted, "yes") })
		w.Advance(24 * time.Hour)
		w.MustRun("provision")
		w.MustEmitSome(onData, "ClaimLost", "pv.kubernetes.io/bind-completed")
		w.Images[fakecluster.GoldImage] = fakecluster.Image{Does: fakecluster.Works}
		fakecluster.Delete(w, fakecluster.User, claim)
		w.Until("nothing is left", 10*time.Minute, w.Empty)
		w.MustRun("provision", "delete")
	})
}
