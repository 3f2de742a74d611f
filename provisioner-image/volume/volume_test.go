package volume_test

import (
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

func TestAnIDIsNoPathAndNoOption(t *testing.T) {
	for text, want := range map[string]bool{
		uid: true, "1f": true, strings.Repeat("a", 63): true, strings.Repeat("a", 64): false, "": false, "-x": false, "../volumes/1f": false, "1f ; sh": false,
	} {
		if volume.IsID(text) != want {
			t.Errorf("%q: %t", text, !want)
		}
	}
}
