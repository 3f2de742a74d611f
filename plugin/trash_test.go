package plugin_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/plugin"
)

// deleted makes a volume, deletes its claim, and returns the PV, which is kept for a week.
func deleted(c *fakecluster.Cluster) *corev1.PersistentVolume {
	c.T.Helper()
	c.SetUpGold(fakecluster.Works)
	c.UpdateConfig("keep-deleted", "168h")
	c.Start()
	claim := c.CreateClaim("data")
	c.Until("it is bound", time.Minute, c.IsBound("data"))
	c.Advance(time.Minute)
	return deletedAgain(c, claim)
}

func deletedAgain(c *fakecluster.Cluster, claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	c.T.Helper()
	pv := claim.Spec.VolumeName
	if pv == "" {
		pv = "pvc-" + string(claim.UID)
	}
	fakecluster.Delete(c, fakecluster.User, claim)
	get := func() *corev1.PersistentVolume { return fakecluster.Get[*corev1.PersistentVolume](c, "", pv) }
	c.Until("its PV is released", time.Minute, func() bool { return get().Status.Phase == corev1.VolumeReleased })
	return get()
}

func undelete(c *fakecluster.Cluster, name, to string) (why string) {
	if _, _, err := plugin.Undelete(c.Context(), c.Server.Client("admin"), name, to); err != nil {
		why = err.Error()
	}
	return why
}

func trash(c *fakecluster.Cluster) []plugin.Trashed {
	return asIs(c, true, func(ctx context.Context, d *plugin.Dispatcher) ([]plugin.Trashed, error) { return d.Trash(ctx) })
}

// The dispatcher is killed before and after each step, and the volume is that of the new claim.
func TestAClaimThatWasDeletedByMistakeIsBackWithItsVolume(t *testing.T) {
	for _, to := range []string{"", "app/restored"} {
		inWorld(t, func(c *fakecluster.Cluster) {
			pv := deleted(c)
			c.Advance(100 * time.Hour)
			if all := trash(c); len(all) != 1 || all[0].Claim != "app/data" || all[0].PersistentVolume != pv.Name || all[0].Size == "" ||
				!all[0].Until.Equal(pv.Status.LastPhaseTransitionTime.Add(168*time.Hour)) {
				c.T.Fatalf("the trash is %+v", all)
			}
			c.Stop()
			if why := undelete(c, "app/data", to); why != "" {
				c.T.Fatal(why)
			}
			c.Start()
			name := "data"
			if to != "" {
				name = "restored"
			}
			c.Until("the new claim is bound", time.Minute, c.IsBound(name))
			c.Stop()
			c.Start()
			c.Advance(1000 * time.Hour)
			claim := c.Claim(name)
			if claim.Spec.VolumeName != pv.Name || len(c.Storage) != 1 || len(c.Runs) != 1 || len(trash(c)) != 0 {
				c.T.Fatalf("the claim has %s of %v, after %d runs", claim.Spec.VolumeName, c.Storage, len(c.Runs))
			}
			if why := undelete(c, pv.Name, to); why == "" || !strings.Contains(why, "Bound") {
				c.T.Errorf("a volume in use is undeleted: %s", why)
			}
			deletedAgain(c, claim)
			c.Advance(100 * time.Hour)
			if len(c.Storage) != 1 {
				c.T.Fatal("after it was deleted again it was not kept")
			}
			c.UpdateConfig("keep-deleted", "0")
			c.Until("the volume is deleted", time.Minute, func() bool { return len(c.Storage) == 0 })
		})
	}
}

func TestUndeleteIsRefusedWithItsReason(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		pv := deleted(c)
		other := c.CreateClaim("data") // as a StatefulSet does
		c.Until("it is bound", time.Minute, c.IsBound("data"))
		if why := undelete(c, pv.Name, ""); !strings.Contains(why, "app/data exists") || !strings.Contains(why, "--to") {
			c.T.Errorf("a claim that exists: %s", why)
		}
		if why := undelete(c, "app/other", ""); !strings.Contains(why, "no PersistentVolume is Released") {
			c.T.Errorf("no such volume: %s", why)
		}
		client := c.Server.Client("admin")
		first := admin.Undelete(c.Context(), client, pv, types.NamespacedName{Namespace: "app", Name: "first"})
		second := admin.Undelete(c.Context(), client, pv, types.NamespacedName{Namespace: "app", Name: "second"})
		if first != nil || second == nil || !strings.Contains(second.Error(), "has changed meanwhile") {
			c.T.Errorf("two at once: %v; %v", first, second)
		}
		c.Until("the first is bound", time.Minute, c.IsBound("first"))
		late := deletedAgain(c, other)
		fakecluster.Delete(c, fakecluster.Admin, late)
		if why := undelete(c, late.Name, "app/late"); !strings.Contains(why, "is being deleted") {
			c.T.Errorf("a PV that is being deleted: %s", why)
		}
	})
}

// What ended between its two writes is completed by the same command, and nothing is deleted
// meanwhile.
func TestAnUndeleteThatWasEndedHalfwayIsCompleted(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		pv := deleted(c)
		fakecluster.Update(c, fakecluster.Admin, pv, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "" })
		c.Advance(1000 * time.Hour)
		if len(c.Storage) != 1 {
			c.T.Fatal("the volume was deleted")
		}
		if why := undelete(c, pv.Name, "app/other"); !strings.Contains(why, "app/data") {
			c.T.Errorf("what is reserved for another claim: %s", why)
		}
		if why := undelete(c, "app/data", ""); why != "" {
			c.T.Fatal(why)
		}
		c.Until("the claim is bound", time.Minute, c.IsBound("data"))
	})
}

func TestTheTrashIsEmptiedBeforeTheTime(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		pv := deleted(c)
		asIs(c, true, func(ctx context.Context, d *plugin.Dispatcher) (int, error) {
			all, err := d.Trash(ctx)
			if err != nil {
				return 0, err
			}
			return len(all), d.Empty(ctx, all)
		})
		c.Until("the volume is deleted", time.Minute, func() bool { return len(c.Storage) == 0 })
		if says := fmt.Sprint(c.Events.About("PersistentVolume/"+pv.Name, "Deleting")); !strings.Contains(says, "before the time of keep-deleted: an administrator has emptied the trash") {
			c.T.Errorf("the events say %s", says)
		}
	})
}

// A volume that was to be deleted, was undeleted, and whose claim is deleted again is kept as any
// other.
func TestAnEmptiedTrashSaysNothingOfALaterDeletion(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		pv := deleted(c)
		c.Stop()
		if err := admin.Empty(c.Context(), c.Server.Client("admin"), pv); err != nil {
			c.T.Fatal(err)
		}
		if why := undelete(c, "app/data", ""); why != "" {
			c.T.Fatal(why)
		}
		c.Start()
		c.Until("the claim is bound", time.Minute, c.IsBound("data"))
		c.Advance(time.Hour)
		deletedAgain(c, c.Claim("data"))
		c.Advance(100 * time.Hour)
		if len(c.Storage) != 1 {
			c.T.Error("the volume was deleted before the time")
		}
	})
}
