package input

import (
	"fmt"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// adopted returns the volume that the config's key adopt names for the claim, or "". Only an
// administrator writes the key: lines of "namespace/claim: volume ID".
func adopted(r contract.Request, c class) (string, error) {
	byClaim, byVolume := map[string]string{}, map[string]string{}
	for line := range strings.Lines(c.adopt) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		claim, id, err := claimAndVolume(line)
		if err != nil {
			return "", err
		}
		if byClaim[claim] != "" || byVolume[id] != "" {
			return "", fmt.Errorf("key adopt: %q names a claim or a volume that another line names, too", line)
		}
		byClaim[claim], byVolume[id] = id, claim
	}
	return byClaim[r.Namespace+"/"+r.Name], nil
}

func claimAndVolume(line string) (claim, id string, err error) {
	claim, id, ok := strings.Cut(line, ":")
	claim, id = strings.TrimSpace(claim), strings.TrimSpace(id)
	if !ok || strings.Count(claim, "/") != 1 || !volume.IsID(id) {
		return "", "", fmt.Errorf("key adopt: %q must have the form NAMESPACE/CLAIM: VOLUME-ID", line)
	}
	return claim, id, nil
}
