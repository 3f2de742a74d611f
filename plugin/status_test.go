package plugin_test

import (
	"context"
	"testing"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/plugin"
)

func TestTheStatusTellsCausesApart(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		full := true
		c.SetUpGold(func(r *fakecluster.Run) fakecluster.Exit {
			if full = !full; full {
				return fakecluster.Exit{Code: contract.ExitCapacity, Message: "claim: full"}
			}
			return fakecluster.Exit{Code: contract.ExitNoPerm, Message: "claim: login refused"}
		})
		c.Start()
		c.CreateClaim("one")
		c.CreateClaim("two")
		c.Advance(20 * time.Second)
		s := asIs(c, true, func(ctx context.Context, d *plugin.Dispatcher) (*plugin.Status, error) { return d.Status(ctx) })
		if causes := s.Classes[0].Causes; len(causes) != 2 {
			c.T.Errorf("the causes are %+v", causes)
		}
		if states := s.Classes[0].States; len(states) != 1 || states["attempted"] != 2 {
			c.T.Errorf("the states are %v", states)
		}
	})
}

func TestTheStatusNamesVolumesThatAreNotDeleted(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		claim := bind(c, failsTo(contract.Delete, fakecluster.Exit{Code: contract.ExitNoPerm, Message: "login refused"}))
		fakecluster.Delete(c, fakecluster.User, claim)
		c.Advance(20 * time.Second)
		s := asIs(c, true, func(ctx context.Context, d *plugin.Dispatcher) (*plugin.Status, error) { return d.Status(ctx, "gold") })
		if causes := s.Classes[0].Causes; len(causes) != 1 || causes[0].Reason != "VolumeFailedDelete" || causes[0].Example != "pv/pvc-"+string(claim.UID) {
			c.T.Errorf("the causes are %+v", causes)
		}
		asIs(c, true, func(ctx context.Context, d *plugin.Dispatcher) (any, error) {
			if _, err := d.Status(ctx, "golden"); err == nil {
				c.T.Error("a class that does not exist has a status")
			}
			return nil, nil //nolint:nilnil // the error was expected
		})
	})
}

// Whoever retires a class does not see in the list of classes that volumes of it are still there, and
// are not deleted.
func TestTheStatusCountsTheVolumesOfAClassThatNoLongerExists(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		claim := bind(c, failsTo(contract.Delete, fakecluster.Exit{Code: contract.ExitNoPerm, Message: "login refused"}))
		gold := func() plugin.Class {
			s := asIs(c, true, func(ctx context.Context, d *plugin.Dispatcher) (*plugin.Status, error) { return d.Status(ctx) })
			if len(s.Classes) != 1 || s.Classes[0].Name != "gold" {
				c.T.Fatalf("the classes are %+v", s.Classes)
			}
			return s.Classes[0]
		}
		if now := gold(); now.Unclassed != 0 || now.Bound != 1 || now.Config == "" {
			c.T.Errorf("while the class exists, it is %+v", now)
		}
		fakecluster.Delete(c, fakecluster.Admin, &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "gold"}})
		c.CreateClaim("never-served")
		if now := gold(); now.Unclassed != 1 || now.Bound != 1 || now.Pending != 0 || now.Config != "" || now.Problem != "" {
			c.T.Errorf("without the class it is %+v", now)
		}
		fakecluster.Delete(c, fakecluster.User, claim)
		c.Advance(20 * time.Second)
		if now := gold(); now.Unclassed != 1 || now.Bound != 0 || len(now.Causes) != 1 || now.Causes[0].Reason != "VolumeFailedDelete" {
			c.T.Errorf("when the claim was deleted, it is %+v", now)
		}
		asIs(c, true, func(ctx context.Context, d *plugin.Dispatcher) (*plugin.Status, error) { return d.Status(ctx, "gold") })
	})
}
