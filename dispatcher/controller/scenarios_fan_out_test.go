package controller_test

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// many is how many claims a user has, each of which one write would have reconciled.
const many = int64(300)

// A user labels a claim again and again that many others are to be clones of. What they wait for is
// that it is bound.
func TestALabelOfASourceEnqueuesNoClones(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "data-sources", "PersistentVolumeClaim")
		w.startWithNodes()
		source := w.CreateClaim("x", claimOf("other"))
		for i := range many {
			w.CreateClaim(fmt.Sprint("c-", i), func(c *corev1.PersistentVolumeClaim) {
				c.Annotations = map[string]string{"k8s.io/CloneRequest": c.Namespace + "/x"}
			})
		}
		w.Advance(2 * time.Minute)
		before := w.reconciles()
		for i := range 10 {
			fakecluster.Update(w, "tenant", source, func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"i": fmt.Sprint(i)} })
			w.Advance(100 * time.Millisecond)
		}
		if n := w.reconciles() - before; n > many {
			w.T.Errorf("ten labels of one claim made %d reconciles", n)
		}
	})
}

// A kubelet changes a label of its node again and again, which any user may name in claims.
func TestALabelOfANodeEnqueuesClaimsOfOursAloneAndRarely(t *testing.T) {
	for class, most := range map[string]int64{"other": many, "gold": 5 * many} {
		inWorld(t, func(w *world) {
			w.SetUpGold(fakecluster.Fails(78, "no"))
			w.startWithNodes()
			node := w.CreateNode("evil")
			for i := range many {
				w.CreateClaim(fmt.Sprint("c-", i), claimOf(class), func(c *corev1.PersistentVolumeClaim) {
					c.Annotations = map[string]string{storagehelpers.AnnSelectedNode: "evil"}
				})
			}
			w.Advance(2 * time.Minute)
			before := w.reconciles()
			for i := range 10 {
				fakecluster.Update(w, "kubelet", node, func(n *corev1.Node) { n.Labels = map[string]string{"i": fmt.Sprint(i)} })
				w.Advance(100 * time.Millisecond)
			}
			if n := w.reconciles() - before; n > most {
				w.T.Errorf("ten labels of a node made %d reconciles of the claims of the class %s", n, class)
			}
		})
	}
}

func claimOf(class string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = &class }
}

// The claim of a source may be seen as bound before its PersistentVolume is.
func TestACloneIsMadeWhenTheWatchOfPersistentVolumesIsLate(t *testing.T) {
	inWorld(t, func(w *world) {
		w.SetUpGold(fakecluster.Works, "data-sources", "PersistentVolumeClaim")
		w.Start()
		w.CreateClaim("clone", func(c *corev1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{"k8s.io/CloneRequest": c.Namespace + "/x"}
		})
		w.Server.DelayWatches("persistentvolumes", true)
		w.CreateClaim("x")
		w.Advance(20 * time.Second)
		w.Server.DelayWatches("persistentvolumes", false)
		w.Until("the clone is bound", 10*time.Second, w.IsBound("clone"))
	})
}
