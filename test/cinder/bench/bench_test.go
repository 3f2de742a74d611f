package main

import (
	"testing"

	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// Every round leaves the Cinder as it was, also one whose volumes are refused in the middle.
func TestRoundsLeaveNothing(t *testing.T) {
	server := cindertest.New()
	t.Cleanup(server.Close)
	api, err := connect(server.Endpoint())
	if err != nil {
		t.Fatal(err)
	}
	for quota, fails := range map[int]bool{10: false, 3: true} {
		server.Quota = quota
		if err := rounds(t.Context(), api, "1,4", 5, cindertest.TypePlain); (err != nil) != fails {
			t.Errorf("quota %d: %v", quota, err)
		}
		if left := server.Volumes(); len(left) > 0 || len(server.Attachments()) > 0 {
			t.Errorf("quota %d: left %v", quota, left)
		}
	}
}
