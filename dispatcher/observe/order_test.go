package observe_test

import (
	"context"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
)

// written reads a cluster in which a run writes its PV, and ends, just before its Job is read.
type written struct {
	cluster.Reader
	ended bool
}

func (r *written) Jobs(ctx context.Context, uid types.UID) ([]*batchv1.Job, error) {
	r.ended = true
	return r.Reader.Jobs(ctx, uid)
}

func (r *written) PV(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	if !r.ended {
		return nil, nil
	}
	return r.Reader.PV(ctx, name)
}

// orphan reads a cluster in which a pod whose Job no longer exists ends, and so does what the caches
// show, just after the PV was read that it has written meanwhile.
type orphan struct {
	cluster.Reader
	end func()
}

func (r *orphan) PV(ctx context.Context, name string) (*corev1.PersistentVolume, error) {
	pv, err := r.Reader.PV(ctx, name)
	r.end()
	return pv, err
}

// Otherwise an undo that is gated would be confirmed, and the volume of that PV deleted.
func TestAPodThatEndsAfterThePVWasReadStillRuns(t *testing.T) {
	left := podOf("provision-uid-1-0", "n1", func(*corev1.Pod) {})
	caches, err := cluster.NewStatic(fake.NewClientset(), []string{namespace}, jobOf(map[string]string{}), podOf(own, "", gated), left)
	if err != nil {
		t.Fatal(err)
	}
	over := left.DeepCopy()
	ended(over)
	end := func() {
		if err := caches.Pods[namespace].Update(over); err != nil {
			t.Error(err)
		}
	}
	if o := observationOf(t, caches, &orphan{caches.Cached(), end}); o.View.Runs[0].OtherPod != left.Name {
		t.Errorf("the other pod is %q: the gate would go", o.View.Runs[0].OtherPod)
	}
}

// Otherwise the run would be recorded as one that has failed, and its volume be undone.
func TestPVOfARunThatHasEndedIsSeen(t *testing.T) {
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: contract.PVName(uid)}}
	live, err := cluster.NewStatic(fake.NewClientset(), []string{namespace}, jobOf(map[string]string{}), podOf(own, "n1", ended), pv)
	if err != nil {
		t.Fatal(err)
	}
	if o := observationBy(t, &written{Reader: live.Cached()}, jobOf(map[string]string{})); o.PV == nil {
		t.Error("its PV was read before its Job")
	}
}
