package main

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// Whoever reads the claim learns that the login has to be corrected, and whoever reads the Job's
// event learns how.
func TestLoginThatCannotWorkEndsAsRefusedCredentials(t *testing.T) {
	front := httptest.NewUnstartedServer(http.NotFoundHandler())
	front.Config.ErrorLog = log.New(io.Discard, "", 0)
	front.StartTLS()
	t.Cleanup(front.Close)
	s := fakeKeystoneStore(t)
	s.binary = build(t)
	for name, tc := range map[string]struct {
		env  []string
		says string
	}{
		"unknown authority, no keystone": {
			[]string{"OS_CINDER_ENDPOINT=" + front.URL + "/v3", "OS_TENANT_NAME=admin"}, "signed by an unknown authority",
		},
		"unknown authority, keystone": {
			[]string{"OS_AUTH_URL=" + front.URL + "/v3", "OS_USERNAME=u", "OS_PASSWORD=hush", "OS_PROJECT_NAME=p"}, "signed by an unknown authority",
		},
		"user's name and ID": {
			[]string{"OS_AUTH_URL=" + s.keystone, "OS_USERNAME=u", "OS_USER_ID=1", "OS_PASSWORD=hush", "OS_PROJECT_NAME=p"},
			"the login is incomplete, or contradicts itself",
		},
		"wrong password": {
			[]string{"OS_AUTH_URL=" + s.keystone, "OS_USERNAME=u", "OS_PASSWORD=hush", "OS_PROJECT_NAME=p"}, "names no domain of the user",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, s, "auto")
			r.login, r.cinder.env = tc.env[0], tc.env[1:]
			code := r.run(contract.Provision)
			said := r.said.String()
			if user := contract.ForClaim(said); code != contract.ExitNoPerm || !strings.Contains(user, tc.says) ||
				!strings.Contains(user, "an administrator must correct the login") || strings.Contains(said, "hush") {
				t.Errorf("code %d: %s", code, said)
			}
		})
	}
}
