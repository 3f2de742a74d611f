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

// A thief of the token of a run writes the ID of any volume on the PersistentVolume of its claim. An
// administrator who made a snapshot for the claim would have made one of the volume of another.
func TestNoCommandBelievesTheVolumeThatAPersistentVolumeNames(t *testing.T) {
	asked := 0
	for _, page := range tracked(t, ".md") {
		text := content(t, page)
		for _, m := range block.FindAllStringSubmatch(text, -1) {
			_, after, found := strings.Cut(m[1], `volume=$(kubectl get pv "$`)
			if !found || !strings.Contains(strings.SplitN(after, "\n", 2)[0], `flex-provisioner\.io/cinder-volume-id`) {
				continue
			}
			asked++
			lines := strings.SplitN(after, "\n", 4)
			if len(lines) < 4 || !strings.Contains(lines[1], `."flex-provisioner.io/claim-uid"')" = "${`) || !strings.Contains(lines[1], "volume=; false") || !strings.Contains(lines[2], "${volume:?}") {
				t.Errorf("%s: the command after cinder-volume-id must compare the UID of the volume's claim, and the next one must not begin without it:\n%s", page, m[1])
			}
		}
		if strings.Contains(text, `flex-provisioner\.io/cinder-attachment-id}`) {
			t.Errorf("%s: a command believes the attachment that a PersistentVolume names", page)
		}
	}
	if asked < 2 {
		t.Errorf("%d blocks ask for the volume of a PersistentVolume", asked)
	}
}
