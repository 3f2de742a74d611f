package reason_test

import (
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// A user reads the note, and an administrator has to find the ConfigMap by it.
func TestAJobThatDoesNotStartNamesItsConfig(t *testing.T) {
	for why, test := range map[string]struct{ note, want string }{
		"ErrImagePull":               {"not found", "correct the key image (or --script-image "},
		"ImagePullBackOff":           {"back-off", "correct the key image (or --script-image "},
		"InvalidImageName":           {"must be lowercase", "correct the key image (or --script-image "},
		"InspectFailed":              {"couldn't parse", "correct the key image (or --script-image "},
		"Failed":                     {"Failed to pull image", "correct the key image (or --script-image "},
		"CreateContainerConfigError": {`secret "s" not found`, "create what is missing in the namespace ns, or"},
		"FailedMount":                {`secret "s" not found`, "files-from-secret"},
		"FailedCreate":               {"exceeded quota", "the quota,"},
		"Unschedulable":              {"0/2 nodes are available", "node-selector"},
	} {
		got := reason.WithStartRemedy(why, reason.Note{Cause: test.note + strings.Repeat(" more", 400)}, "ns", "gold").String()
		if !strings.HasPrefix(got, test.note) || !strings.Contains(got, ". Remedy: an administrator must ") || !strings.Contains(got, test.want) || !strings.HasSuffix(got, "ConfigMap ns/gold") || len(got) > 800 {
			t.Errorf("%s: %d bytes: %q", why, len(got), got)
		}
	}
	for why, note := range map[string]string{"Failed": `Error: secret "s" not found`, "JobSuspended": "the Job is suspended", "": ""} {
		if got := reason.WithStartRemedy(why, reason.Note{Cause: note}, "ns", "gold"); got != (reason.Note{Cause: note}) {
			t.Errorf("%s: %q", why, got)
		}
	}
}
