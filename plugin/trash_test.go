package plugin_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	storagehelpers "k8s.io/component-helpers/storage/volume"

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
		first := admin.Undelete(c.Context(), client, pv, nil, types.NamespacedName{Namespace: "app", Name: "first"})
		second := admin.Undelete(c.Context(), client, pv, nil, types.NamespacedName{Namespace: "app", Name: "second"})
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

// cutOff undeletes, and ends before the claim is created.
func cutOff(c *fakecluster.Cluster, name, to string) {
	c.T.Helper()
	client := c.Server.Client("admin")
	client.PrependReactor("create", "persistentvolumeclaims", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return len(a.(clienttesting.CreateActionImpl).CreateOptions.DryRun) == 0, nil, errors.New("the command is killed")
	})
	if _, _, err := plugin.Undelete(c.Context(), client, name, to); err == nil || !strings.Contains(err.Error(), "is killed") {
		c.T.Fatalf("it was not cut off: %v", err)
	}
}

// What ended between its two writes is completed by the same command, and nothing is deleted
// meanwhile, also if another claim of the name is deleted before.
func TestAnUndeleteThatWasEndedHalfwayIsCompleted(t *testing.T) {
	for _, to := range []string{"", "app/restored"} {
		inWorld(t, func(c *fakecluster.Cluster) {
			pv := deleted(c)
			var second *corev1.PersistentVolume
			if to != "" {
				other := c.CreateClaim("data") // as a StatefulSet does
				c.Until("it is bound", time.Minute, c.IsBound("data"))
				cutOff(c, pv.Name, to)
				second = deletedAgain(c, other)
			} else {
				cutOff(c, "app/data", to)
			}
			c.Advance(30 * time.Second)
			c.MustEmit("PersistentVolume/"+pv.Name, "VolumeInDoubt", 0) // an undelete may be under way
			c.Advance(time.Minute)
			c.MustEmitSome("PersistentVolume/"+pv.Name, "VolumeInDoubt", "matches any claim "+cmp.Or(to, "app/data"),
				"Remedy: create that claim with the volume: kubectl flex undelete "+pv.Name+" --to="+cmp.Or(to, "app/data")+". ")
			c.Advance(100 * time.Hour)
			reserved := trash(c)[0]
			if want := cmp.Or(to, "app/data"); reserved.PersistentVolume != pv.Name || reserved.ReservedFor != want || reserved.Claim != "app/data" {
				c.T.Errorf("the trash has %+v", reserved)
			}
			if only, err := plugin.Only(trash(c), []string{pv.Name}, true); err == nil {
				c.T.Errorf("what is reserved is emptied: %+v", only)
			}
			if second != nil {
				why := undelete(c, second.Name, to)
				if !strings.Contains(why, pv.Name+" is reserved for the claim app/restored") {
					c.T.Errorf("another PV for the claim: %s", why)
				}
			}
			if why := undelete(c, "app/data", to); why != "" {
				c.T.Fatal(why)
			}
			name := strings.TrimPrefix(cmp.Or(to, "app/data"), "app/")
			c.Until("the claim is bound", time.Minute, c.IsBound(name))
			if got := c.Claim(name).Spec.VolumeName; got != pv.Name {
				c.T.Errorf("the claim has %s", got)
			}
		})
	}
}

// What was reserved for a claim that cannot be created is given to another.
func TestAReservedVolumeIsGivenToAnotherClaim(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		pv := deleted(c)
		cutOff(c, "app/data", "app/typo")
		if why := undelete(c, pv.Name, "app/other"); why != "" {
			c.T.Fatal(why)
		}
		c.Until("the claim is bound", time.Minute, c.IsBound("other"))
	})
}

func TestNothingIsReservedForAClaimThatMayNotBeCreated(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		pv := deleted(c)
		c.Server.Refuse(func(_, verb string, obj fakecluster.Object) error {
			if _, isClaim := obj.(*corev1.PersistentVolumeClaim); isClaim && verb == "create" {
				return errors.New("exceeded quota")
			}
			return nil
		})
		if why := undelete(c, pv.Name, ""); !strings.Contains(why, "exceeded quota. Nothing was changed") {
			c.T.Error(why)
		}
		c.Server.Refuse(nil)
		if all := trash(c); len(all) != 1 || all[0].ReservedFor != "" || all[0].State != string(corev1.VolumeReleased) {
			c.T.Errorf("the trash is %+v", all)
		}
	})
}

// Kubernetes would leave a claim Lost that was bound before.
func TestUndeleteIsRefusedForAClaimThatCannotBeBound(t *testing.T) {
	for wants, spoil := range map[string]func(*corev1.PersistentVolumeClaim){
		"has lost this volume": func(claim *corev1.PersistentVolumeClaim) {
			claim.Annotations = map[string]string{storagehelpers.AnnBindCompleted: "yes"}
		},
		"is being deleted": func(claim *corev1.PersistentVolumeClaim) {
			claim.Finalizers, claim.DeletionTimestamp = []string{"test/kept"}, &metav1.Time{Time: time.Now()}
		},
	} {
		inWorld(t, func(c *fakecluster.Cluster) {
			pv := deleted(c)
			client := c.Server.Client("admin")
			client.PrependReactor("get", "persistentvolumeclaims", func(clienttesting.Action) (bool, runtime.Object, error) {
				claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "app", Name: "data"}}
				claim.Spec.VolumeName = pv.Name
				spoil(claim)
				return true, claim, nil
			})
			if _, _, err := plugin.Undelete(c.Context(), client, "app/data", ""); err == nil || !strings.Contains(err.Error(), wants) {
				c.T.Errorf("%s: %v", wants, err)
			}
			if all := trash(c); len(all) != 1 || all[0].ReservedFor != "" {
				c.T.Errorf("the trash is %+v", all)
			}
		})
	}
}

// An administrator gave the volume to a PersistentVolume made by hand.
func TestUndeleteIsRefusedForAVolumeThatAnotherPersistentVolumeHas(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		pv := deleted(c)
		c.Stop()
		byHand := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "by-hand"}}
		byHand.Spec = *pv.Spec.DeepCopy()
		byHand.Spec.ClaimRef = nil
		fakecluster.Create(c, fakecluster.Admin, byHand)
		if why := undelete(c, "app/data", ""); !strings.Contains(why, "by-hand has the same volume source") {
			c.T.Errorf("a volume of two PersistentVolumes: %s", why)
		}
	})
}

// A PersistentVolume of another provisioner is none of a claim's that can be undeleted.
func TestOfSeveralDeletedClaimsOfANameOneIsNamed(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		pv := deleted(c)
		foreign := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "foreign"}, Status: pv.Status}
		foreign.Spec.ClaimRef = pv.Spec.ClaimRef.DeepCopy()
		fakecluster.Create(c, fakecluster.Admin, foreign)
		cutOff(c, "app/data", "app/typo")
		other := c.CreateClaim("data")
		c.Until("it is bound", time.Minute, c.IsBound("data"))
		second := deletedAgain(c, other)
		third := c.CreateClaim("data")
		c.Until("it is bound", time.Minute, c.IsBound("data"))
		last := deletedAgain(c, third)
		_, err := plugin.Only(trash(c), []string{"app/data"}, true)
		says := []string{fmt.Sprint(err), undelete(c, "app/data", "app/new")}
		for _, say := range says {
			if !strings.Contains(say, "several claims") || !strings.Contains(say, second.Name) || !strings.Contains(say, last.Name) {
				c.T.Errorf("two volumes: %s", say)
			}
		}
		if strings.Contains(says[1], "foreign") || !strings.Contains(says[1], pv.Name) {
			c.T.Errorf("it names %s", says[1])
		}
		if named, err := plugin.Only(trash(c), []string{last.Name}, true); err != nil || len(named) != 1 {
			c.T.Errorf("one that is named: %+v, %v", named, err)
		}
		fakecluster.Delete(c, fakecluster.Admin, last)
		if all, err := plugin.Only(trash(c), []string{last.Name}, false); err != nil || all[0].State != "Terminating" {
			c.T.Errorf("a PV that was deleted by hand: %+v, %v", all, err)
		}
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
