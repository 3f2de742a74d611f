package controller

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// A replica that does not lead hears of every claim of the cluster, and reconciles none.
func TestAReplicaThatDoesNotLeadEnqueuesNothing(t *testing.T) {
	c, err := New(fake.NewClientset(), nil, clock.RealClock{}, Options{Dispatcher: config.Dispatcher{Provisioner: "p"}, Namespaces: []string{"home"}})
	if err != nil {
		t.Fatal(err)
	}
	claim := func(i int) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprint(i), UID: types.UID(fmt.Sprint(i))}}
	}
	for i := range 1000 {
		c.claimChanged(claim(i))
	}
	if n := c.claims.Queue.Len(); n != 0 {
		t.Errorf("%d UIDs in its queue", n)
	}
	c.leading.Store(true)
	c.claimChanged(claim(0))
	if n := c.claims.Queue.Len(); n != 1 {
		t.Errorf("%d UIDs in the leader's queue, want 1", n)
	}
}

func TestANewLeaderLooksAtWaitingClaimsOverTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "ours"}, Provisioner: "p"})
		c, err := New(client, nil, clock.RealClock{}, Options{Dispatcher: config.Dispatcher{Provisioner: "p"}, Namespaces: []string{"home"}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 1010 {
			name := fmt.Sprint("c", i)
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)}}
			if i >= 10 { // the others have no class
				claim.Spec.StorageClassName = new("ours")
			}
			if _, err := client.CoreV1().PersistentVolumeClaims("ns").Create(t.Context(), claim, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		if !c.Start(ctx) {
			t.Fatal("the caches were not filled")
		}
		c.leading.Store(true)
		c.enqueueAll()
		synctest.Wait()
		first := c.claims.Queue.Len()
		time.Sleep(5*time.Second + time.Millisecond)
		synctest.Wait()
		later := c.claims.Queue.Len()
		if first != 10+firstLooks || later != 10+6*firstLooks {
			t.Errorf("%d claims are enqueued at once, %d after five seconds", first, later)
		}
		c.claims.Queue.ShutDown()
		c.runs.Queue.ShutDown()
		c.classes.Queue.ShutDown()
		c.revisions.ShutDown()
		stop()
		c.Stopped()
		time.Sleep(time.Second)
	})
}

// A claim that is created when a replica begins to lead does not wait behind all volumes of the
// cluster.
func TestANewLeaderLooksAtVolumesAtRestOverTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		c, err := New(client, nil, clock.RealClock{}, Options{Dispatcher: config.Dispatcher{Provisioner: "p"}, Namespaces: []string{"home"}})
		if err != nil {
			t.Fatal(err)
		}
		const atRest = restLooks + 10
		for i := range atRest + 1 {
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pvc-", i)}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}}
			if i == atRest {
				pv.Status.Phase = corev1.VolumeReleased
			}
			if _, err := client.CoreV1().PersistentVolumes().Create(t.Context(), pv, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		if !c.Start(ctx) {
			t.Fatal("the caches were not filled")
		}
		c.leading.Store(true)
		c.enqueueAll()
		synctest.Wait()
		first := c.claims.Queue.Len()
		time.Sleep(restEvery + time.Millisecond)
		synctest.Wait()
		later := c.claims.Queue.Len()
		if first != restLooks+1 || later != atRest+1 {
			t.Errorf("%d volumes are enqueued at once, %d after %s", first, later, restEvery)
		}
		c.claims.Queue.ShutDown()
		c.runs.Queue.ShutDown()
		c.classes.Queue.ShutDown()
		c.revisions.ShutDown()
		stop()
		c.Stopped()
		time.Sleep(time.Second)
	})
}
