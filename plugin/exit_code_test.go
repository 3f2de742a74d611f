package plugin_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// A typing error of the script sent people to their storage.
func TestTheRemedyIsChosenByTheExitCode(t *testing.T) {
	const ofScript = "correct the script or the image: it "
	for code, want := range map[int32]string{
		2: ofScript + "has an error", 126: ofScript + "names a program that cannot be executed", 127: ofScript + "names a program that does not exist",
		1: "check the storage, and whether the script writes a PersistentVolume that is refused", 75: "check the storage, and whether",
	} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			inWorld(t, func(c *fakecluster.Cluster) {
				c.SetUpGold(fakecluster.Fails(code, "mkvol: not found"))
				c.Start()
				claim := c.CreateClaim("data")
				c.Advance(20 * time.Second)
				if r := why(c, claim.UID); !strings.HasPrefix(r.Remedy, want) || !strings.Contains(r.Remedy, "describe job") {
					c.T.Errorf("the remedy is %q", r.Remedy)
				}
			})
		})
	}
}
