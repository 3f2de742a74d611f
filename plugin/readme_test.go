package plugin_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// The README shows what is printed of a claim that its own script has refused: some lines, with … for
// what it leaves out.
func TestTheREADMEShowsWhatWhyPrints(t *testing.T) {
	const refusal = "a directory cannot be a raw block device: request volumeMode Filesystem"
	page, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, _ := strings.Cut(string(page), "$ kubectl flex why data --namespace=app\n")
	block, script, _ := strings.Cut(block, "```\n")
	if strings.Count(block, "\n") != 6 || !strings.Contains(script, `flex refuse "`+refusal+`"`) {
		t.Fatalf("the README shows\n%s", block)
	}
	inWorld(t, func(c *fakecluster.Cluster) {
		c.SetUpGold(fakecluster.Fails(contract.ExitBadRequest, "claim: "+refusal))
		c.Start()
		claim := c.CreateClaim("data")
		c.Advance(6 * time.Second)
		rest := lastLines(c, why(c, claim.UID), 100) + "\n"
		for part := range strings.FieldsFuncSeq(block, func(r rune) bool { return r == '…' || r == '\n' }) {
			_, after, found := strings.Cut(rest, part)
			if !found {
				c.T.Errorf("the README shows %q, which is not printed, or not in this order", part)
				continue
			}
			rest = after
		}
	})
}
