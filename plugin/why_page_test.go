package plugin_test

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
	"github.com/flex-provisioner/flex-provisioner/plugin"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// The page shows what the command prints. The picture of it is made of the page.
func TestThePageShowsWhatWhyPrints(t *testing.T) {
	page, err := os.ReadFile("../docs/kubectl-flex.md")
	if err != nil {
		t.Fatal(err)
	}
	inWorld(t, func(c *fakecluster.Cluster) {
		refuses := fakecluster.Fails(contract.ExitNoPerm, "claim: filer: login refused for the user k8s")
		c.SetUpGold(refuses)
		c.Start()
		claim := c.CreateClaim("data", func(claim *corev1.PersistentVolumeClaim) {
			claim.Namespace, claim.Status.Phase = "shop", corev1.ClaimPending
			claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("5Gi")
		})
		c.Advance(80 * time.Second)
		var out bytes.Buffer
		if err := plugin.Print(&out, time.Now(), why(c, claim.UID)); err != nil {
			c.T.Fatal(err)
		}
		want := strings.ReplaceAll(out.String(), string(claim.UID), fixture.UID)
		if !strings.Contains(string(page), "\n```\n"+want+"```\n") {
			c.T.Errorf("the page does not show\n%s", want)
		}
	})
}
