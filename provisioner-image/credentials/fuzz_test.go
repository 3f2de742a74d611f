package credentials_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
)

// secret stands in no seed: where it is printed, a password is.
const secret = "hush-7Qx"

// No text of a cloud config makes its password printable, by the login, its warnings or its faults.
func FuzzCloudConfig(f *testing.F) {
	f.Add("[Global]\nauth-url=http://k/v3\nusername=u\ntenant-name=t\ndomain-name=d\n")
	f.Add("[Global \"a\"]\ncinder-endpoint = \"http://192.0.2.1:8776/v3\"\ntls-insecure\n; x\n[BlockStorage]\nbs-version=v3\n[Global \"b\"]\n")
	f.Add("[Global]\nauth-url=http://k/v3\nuser-id=\"u\\\n\nca-file=x\n[Networking \"")
	f.Fuzz(func(t *testing.T, text string) {
		text += "\npassword=\"" + secret + "\"\n"
		login, err := credentials.FromConfig("cloud.conf", []byte(text), "", files)
		mustHide(t, text, login, err)
	})
}

// Nor does one of a clouds.yaml.
func FuzzClouds(f *testing.F) {
	f.Add("clouds:\n  one:\n    region_name: R\n    interface: internalURL\n    auth:\n      auth_url: http://k/v3\n      username: u\n      project_name: t\n")
	f.Add("clouds:\n  one: &a\n    verify: false\n    profile: vendor\n    regions: [V, {name: R, values: {auth: {domain_id: d}}}]\n    auth:\n")
	f.Add("clouds:\n  one:\n    auth_type: v3token\n    networks: [1]\n    auth: !!map\n      token: 007\n")
	f.Fuzz(func(t *testing.T, text string) {
		text += "\n      password: " + secret + "\n"
		login, err := credentials.FromClouds("clouds.yaml", []byte(text), "", files)
		mustHide(t, text, login, err)
	})
}

func mustHide(t *testing.T, text string, login credentials.Login, err error) {
	t.Helper()
	printed := strings.Join(append(login.Warnings, fmt.Sprintf("%v %+v %#v", err, login.Password, login.Password)), "\n")
	if strings.Contains(printed, secret) {
		t.Errorf("of %q is printed:\n%s", text, printed)
	}
}
