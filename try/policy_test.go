package try

import (
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/deploy"
)

// A world refuses what the shipped policy does.
func TestVolumesOfANodeAreWhereTheShippedPolicyAdmitsThem(t *testing.T) {
	policy, err := deploy.Files.ReadFile("base/pv-source-policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if want := "variables.path == '" + nodeDirectory + "/' + object.metadata.name"; !strings.Contains(string(policy), want) {
		t.Errorf("the policy lacks %s", want)
	}
}
