package plugin_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/plugin"
)

// At every moment of its life a claim is explained, and is said to be well only when it is bound, or
// when nothing is left of it.
func TestAClaimIsExplainedAtEveryMomentOfItsLife(t *testing.T) {
	for name, image := range map[string]func(*fakecluster.Run) fakecluster.Exit{
		"at once":             fakecluster.Works,
		"after two failures":  fakecluster.Script(fakecluster.Fails(contract.ExitTempFail, ""), fakecluster.Halfway(contract.ExitUnavailable), fakecluster.Works),
		"after a full pool":   fakecluster.Script(fakecluster.Fails(contract.ExitCapacity, "claim: full"), fakecluster.Works),
		"with a slow storage": fakecluster.Works,
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(c *fakecluster.Cluster) {
				c.SetUpGold(image)
				if name == "with a slow storage" {
					c.Images[fakecluster.GoldImage] = fakecluster.Image{Does: image, Takes: 20 * time.Second}
				}
				c.Start()
				claim := c.CreateClaim("data")
				seen := map[plugin.State]bool{}
				look := func() plugin.State {
					r := asIs(c, true, func(ctx context.Context, d *plugin.Dispatcher) (*plugin.Report, error) {
						return d.Explain(ctx, claim.UID)
					})
					bound := c.IsBound("data")()
					switch now := c.Claim("data"); {
					case r.State == plugin.OK && !bound && now != nil:
						c.T.Errorf("it is said to be well: %+v", r)
					case r.State == plugin.Failed && (r.Cause == "" || bound && now.DeletionTimestamp == nil):
						c.T.Errorf("it is said to have failed: %+v", r)
					case r.State == plugin.Working && r.Next == "":
						c.T.Errorf("it is not said what comes next: %+v", r)
					}
					seen[r.State] = true
					return r.State
				}
				for range 400 {
					c.Advance(time.Second)
					if look() == plugin.OK && c.IsBound("data")() {
						break
					}
				}
				fakecluster.Delete(c, fakecluster.User, c.Claim("data"))
				for range 60 {
					c.Advance(time.Second)
					look()
				}
				if !seen[plugin.OK] || len(fakecluster.List[*corev1.PersistentVolume](c)) > 0 {
					c.T.Errorf("seen %v, and volumes are left", seen)
				}
			})
		})
	}
}
