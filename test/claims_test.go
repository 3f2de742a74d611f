package test

import (
	"strings"
	"testing"
)

// Whoever creates a claim writes spec.volumeName, and may name the PersistentVolume of another
// claim. An administrator who followed a page once gave that one's volume to the claim's user.
func TestNoCommandBelievesThePersistentVolumeThatAClaimNames(t *testing.T) {
	asked := 0
	for _, page := range tracked(t, ".md") {
		for _, m := range block.FindAllStringSubmatch(content(t, page), -1) {
			before, after, found := strings.Cut(m[1], "{.spec.volumeName}")
			if !found {
				continue
			}
			asked++
			lines := strings.SplitN(after, "\n", 3)
			if len(lines) < 3 || !strings.Contains(lines[1], "{.spec.claimRef.uid}") || !strings.Contains(lines[1], "old=; false") ||
				!strings.Contains(before, "old=") || strings.Contains(after, "{.spec.volumeName}") {
				t.Errorf("%s: the command after spec.volumeName must compare the UID of the claim with that of claimRef:\n%s", page, m[1])
			}
		}
	}
	if asked < 2 {
		t.Errorf("%d blocks ask for spec.volumeName", asked)
	}
}
