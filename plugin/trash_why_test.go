package plugin_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/plugin"
)

// Kubernetes deletes the event of a volume that is kept after an hour, and its claim at once.
func TestWhyNamesTheVolumeThatIsKeptOfADeletedClaim(t *testing.T) {
	inWorld(t, func(c *fakecluster.Cluster) {
		deleted(c)
		c.Advance(100 * time.Hour)
		says := func(claim string) string {
			return asIs(c, true, func(ctx context.Context, d *plugin.Dispatcher) (string, error) { return d.Deleted(ctx, claim), nil })
		}
		if said := says("app/data"); !strings.Contains(said, "kubectl flex trash app/data") || !strings.Contains(said, "kubectl flex undelete app/data") {
			c.T.Errorf("of the deleted claim: %q", said)
		}
		if said := says("app/other"); said != "" {
			c.T.Errorf("of a claim that never was: %q", said)
		}
	})
}

// A user who may list no PersistentVolumes does not know whether one is left.
func TestWhyNamesWhoSeesTheVolumeOfADeletedClaim(t *testing.T) {
	var none *plugin.Dispatcher
	if said := none.Deleted(t.Context(), "app/data"); said != ". Its volume may be kept. An administrator sees it: kubectl flex trash app/data" {
		t.Errorf("without a dispatcher: %q", said)
	}
}
