package input_test

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
)

// No property and no variable is needed.
func TestCloudsFileInTheSecretIsEnough(t *testing.T) {
	task, err := with(t, map[string]string{"cloud": "one"}, func(_ *contract.Requests, f fstest.MapFS) {
		delete(f, "secret/cloud.conf")
		f["secret/clouds.yaml"] = &fstest.MapFile{Data: []byte(
			"clouds: {one: {auth: {auth_url: https://k/v3, application_credential_id: i, application_credential_secret: s}}, two: {auth: {}}}",
		)}
	})
	if err != nil || task.Login.AuthURL != "https://k/v3" || task.Login.AppCredentialID != "i" {
		t.Errorf("%+v, %v", task.Login, err)
	}
}

// A cloud config that was written for another program names its files by their paths there.
func TestPathOfALoginsFileIsItsNameInTheSecret(t *testing.T) {
	const ca = "secret/ca.pem"
	for name, tc := range map[string]struct{ path, says string }{
		"of another program":  {"/etc/kubernetes/ca.pem", ""},
		"where it is mounted": {contract.SecretDir + "/ca.pem", ""},
		"its name":            {"ca.pem", ""},
		"not there":           {"/etc/kubernetes/other.pem", "file /etc/kubernetes/other.pem is missing: add it as other.pem to the Secret"},
		"outside":             {"../pv.json", "add it as pv.json to the Secret"},
		"the folder above":    {"..", "file .. is missing"},
		"the folder":          {"/", "read / from the Secret that the config names in files-from-secret"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := with(t, nil, func(_ *contract.Requests, f fstest.MapFS) {
				f["secret/cloud.conf"] = &fstest.MapFile{Data: []byte("[Global]\ncinder-endpoint=https://c/v3\nca-file=" + tc.path + "\n")}
				f[ca] = &fstest.MapFile{Data: []byte("junk")}
			})
			want := tc.says
			if want == "" {
				want = "has no PEM certificate" // it was read
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("error %v, want %q", err, want)
			}
		})
	}
}

// The error is in an event that users read.
func TestAKeyInThePlaceOfItsFileIsNotRepeated(t *testing.T) {
	const key = `-----BEGIN EC PRIVATE KEY-----\nMHcCAQEEIsecret\n-----END EC PRIVATE KEY-----`
	_, err := with(t, map[string]string{"cloud": "one"}, func(_ *contract.Requests, f fstest.MapFS) {
		delete(f, "secret/cloud.conf")
		f["secret/clouds.yaml"] = &fstest.MapFile{Data: []byte(
			"clouds: {one: {auth: {auth_url: https://k/v3, application_credential_id: i, application_credential_secret: s}, key: \"" + key + "\"}}",
		)}
	})
	if err == nil || strings.Contains(err.Error(), "MHcC") || !strings.Contains(err.Error(), "does not name a file of the Secret") {
		t.Errorf("error %v", err)
	}
}

func TestPropertyCloudNamesTheSectionOfACloudConfig(t *testing.T) {
	task, err := with(t, map[string]string{"cloud": "two"}, func(_ *contract.Requests, f fstest.MapFS) {
		f["secret/cloud.conf"] = &fstest.MapFile{Data: []byte(
			"[Global \"one\"]\ncinder-endpoint=http://one/v3\n[Global \"two\"]\ncinder-endpoint=http://two/v3\n",
		)}
	})
	if err != nil || task.Login.Endpoint != "http://two/v3" {
		t.Errorf("%+v, %v", task.Login, err)
	}
}

// The login is never sent without the proxy that the administrator has named.
func TestAProxyThatIsNoURLIsRefused(t *testing.T) {
	for text, isURL := range map[string]bool{
		"": true, "proxy.example:3128": true, "http://proxy.example:3128/": true, "https://user:p%23ss@proxy.example": true, "socks5://192.0.2.1:1080": true,
		"http://user:hu#sh@proxy.example:3128": false, "http://user:12/34@proxy.example:3128": false, "http://user:hu sh@proxy.example:3128": false,
		"http://user:hu%sh@proxy.example:3128": false, "http://": false, "://": false,
	} {
		for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
			in := sources(t, nil)
			in.Env = map[string]string{name: text}
			_, err := read(in)
			if isURL && err == nil {
				continue
			}
			f, ok := errors.AsType[*input.Error](err)
			if isURL || !ok || f.Code != contract.ExitConfig || !strings.Contains(err.Error(), name+" must be the URL of a proxy") || strings.Contains(err.Error(), "user") {
				t.Errorf("%s=%s: %v", name, text, err)
			}
		}
	}
}
