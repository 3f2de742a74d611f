package cluster_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// atRest returns a claim and its PV, which are at rest.
func atRest(i int) (*corev1.PersistentVolumeClaim, *corev1.PersistentVolume) {
	name := fmt.Sprintf("%04d", i)
	claim := fixture.Claim(func(c *corev1.PersistentVolumeClaim) {
		c.Name, c.UID, c.Spec.VolumeName, c.Status.Phase = name, types.UID("uid-"+name), "pv-"+name, corev1.ClaimBound
		c.Status.Capacity = c.Spec.Resources.Requests
	})
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + name}, Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound}}
	pv.Spec.NFS, pv.Spec.StorageClassName = &corev1.NFSVolumeSource{Server: "nas", Path: "/" + name}, *claim.Spec.StorageClassName
	return claim, pv
}

// cachesOf returns caches of these objects, and the key of the class of atRest.
func cachesOf(t *testing.T, objects ...metav1.Object) (*cluster.Caches, string) {
	t.Helper()
	caches, err := cluster.NewStatic(fake.NewClientset(), nil, objects...)
	if err != nil {
		t.Fatal(err)
	}
	claim, _ := atRest(0)
	return caches, config.ClassLabel(*claim.Spec.StorageClassName)
}

// So many have some buckets of their indexes in common.
func TestOfABucketOnlyWhatIsAskedForIsFound(t *testing.T) {
	const many = 2000
	var objects []metav1.Object
	for i := range many {
		claim, pv := atRest(i)
		objects = append(objects, claim, pv)
	}
	caches, _ := cachesOf(t, objects...)
	for i := range many {
		claim, pv := atRest(i)
		if found := caches.ClaimOf(claim.UID); found == nil || found.UID != claim.UID || found.Name != claim.Name {
			t.Errorf("the claim with the UID %s is %v", claim.UID, found)
		}
		if same := caches.PVsOfSource(pv); len(same) != 1 || same[0].Name != pv.Name {
			t.Errorf("%d PVs have the volume source of %s", len(same), pv.Name)
		}
	}
	for i := range many {
		if found := caches.ClaimOf(types.UID(fmt.Sprint("no-", i))); found != nil {
			t.Errorf("the claim %s has a UID that no claim has", found.Name)
		}
	}
	if same := caches.PVsOfSource(&corev1.PersistentVolume{}); len(same) > 0 {
		t.Errorf("%d PVs have no volume source", len(same))
	}
}

func TestWhatIsAtRestDoesNotMove(t *testing.T) {
	resting, volume := atRest(1)
	growing, released := atRest(2)
	growing.Status.Capacity, released.Status.Phase = nil, corev1.VolumeReleased
	caches, class := cachesOf(t, growing, resting, released, volume)
	names := func(all []*corev1.PersistentVolumeClaim) (out []string) {
		for _, claim := range all {
			out = append(out, claim.Name)
		}
		return out
	}
	for name, tt := range map[string]struct {
		got  []*corev1.PersistentVolumeClaim
		want []string
	}{
		"By":     {caches.Claims.By(cluster.ByClass, class), []string{"0001", "0002"}},
		"All":    {caches.Claims.All(), []string{"0001", "0002"}},
		"Moving": {caches.Claims.Moving(cluster.ByClass, class), []string{"0002"}},
	} {
		if got := names(tt.got); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	if moving := caches.PVs.Moving(cluster.ByClass, class); len(moving) != 1 || moving[0].Name != released.Name {
		t.Errorf("the PVs %v move", moving)
	}
	if resting := caches.PVs.Resting(cluster.ByClass, class); len(resting) != 1 || resting[0].GetName() != volume.Name {
		t.Errorf("the PVs %v are at rest", resting)
	}
	for name, want := range map[string]bool{volume.Name: true, released.Name: false, "none": false} {
		if got := caches.PVs.Rests(name); got != want {
			t.Errorf("%s is at rest: %v", name, got)
		}
	}
}

// A replica that does not lead fills its caches with every claim of the cluster.
func TestHandlersThatAreNotActiveHearOfNoClaimAndNoPV(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		claim, pv := atRest(1)
		later, latersPV := atRest(2)
		client := fake.NewClientset(claim, pv)
		var active atomic.Bool
		var heard []string
		handlers := cluster.NoHandlers()
		handlers.Active = active.Load
		handlers.Claim = func(claim *corev1.PersistentVolumeClaim) { heard = append(heard, claim.Name) }
		handlers.PV = func(pv *corev1.PersistentVolume) { heard = append(heard, pv.Name) }
		caches, err := cluster.New(client, contract.ProvisionerName, []string{"ns"}, nil, handlers)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer caches.Shutdown()
		defer stop()
		caches.Start(ctx)
		synctest.Wait()
		active.Store(true)
		_ = client.Tracker().Add(latersPV)
		synctest.Wait()
		_ = client.Tracker().Add(later)
		synctest.Wait()
		if want := []string{latersPV.Name, later.Name}; !slices.Equal(heard, want) {
			t.Errorf("heard of %v, want %v", heard, want)
		}
	})
}
