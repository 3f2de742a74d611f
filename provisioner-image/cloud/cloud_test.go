package cloud_test

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cloud"
)

func TestFromConfig(t *testing.T) {
	tests := map[string]struct {
		config string
		want   cloud.Login
		fault  string
	}{
		"the classic example without keystone": {
			config: "[Global]\ncinder-endpoint=http://192.0.2.1:8776/v3\ntenant-name=admin\n",
			want:   cloud.Login{Endpoint: "http://192.0.2.1:8776/v3", Project: "admin"},
		},
		"keystone, with comments, quotes and any case": {
			config: "; who\n[ global ] # where\nAuth-URL = \"https://k.example/identity/v3/\"\nusername=u\n" +
				"password = \"a#b;c\\\"d\\\\e\"\ntenant-id = 1f ; inline\nregion=R\n",
			want: cloud.Login{
				AuthURL: "https://k.example/identity/v3/", Username: "u", Password: `a#b;c"d\e`, ProjectID: "1f", Region: "R",
			},
		},
		"the dead version": {
			config: "[Global]\ncinder-endpoint=http://192.0.2.1:8776/v2",
			fault:  `"http://192.0.2.1:8776/v2" names the API v2, which is gone: write "http://192.0.2.1:8776/v3"`,
		},
		"keystone's dead version": {
			config: "[Global]\nauth-url=http://192.0.2.1:5000/v2.0/\nusername=u\npassword=p\ntenant-name=t",
			fault:  `write "http://192.0.2.1:5000/v3"`,
		},
		"no version":      {config: "[Global]\ncinder-endpoint=http://192.0.2.1:8776", fault: `write "http://192.0.2.1:8776/v3"`},
		"no URL":          {config: "[Global]\ncinder-endpoint=192.0.2.1", fault: "is no http or https URL"},
		"unknown key":     {config: "[Global]\ncinder-endpoints=x", fault: `line 2: key "cinder-endpoints" is unknown`},
		"unknown section": {config: "[Globl]\nregion=x", fault: "line 2: section [globl] is unknown"},
		"no value":        {config: "[Global]\nregion", fault: "line 2: no key = value"},
		"open quote":      {config: "[Global]\npassword=\"hush", fault: "line 2: the value's closing quote is missing"},
		"open section":    {config: "[Global", fault: "line 1 is no section"},
		"empty":           {config: "", fault: "neither a Cinder endpoint"},
		"both":            {config: "[Global]\ncinder-endpoint=http://a/v3\nauth-url=http://b/v3", fault: "both a Cinder"},
		"a colon":         {config: "[Global]\ncinder-endpoint=http://a/v3\ntenant-name=a:b", fault: "no colon"},
		"all at once":     {config: "[Global]\nauth-url=http://b/v3", fault: "no user is named"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := cloud.FromConfig("cloud.conf", []byte(tc.config))
			check(t, got, err, tc.want, tc.fault)
		})
	}
}

func TestFromEnv(t *testing.T) {
	tests := map[string]struct {
		env   map[string]string
		want  cloud.Login
		fault string
	}{
		"without keystone": {
			env:  map[string]string{"OS_CINDER_ENDPOINT": "http://192.0.2.1:8776/v3", "OS_TENANT_NAME": "admin"},
			want: cloud.Login{Endpoint: "http://192.0.2.1:8776/v3", Project: "admin"},
		},
		"keystone": {
			env: map[string]string{
				"OS_AUTH_URL": "http://192.0.2.1:5000/v3", "OS_USERNAME": "u", "OS_PASSWORD": "p",
				"OS_PROJECT_NAME": "new", "OS_TENANT_NAME": "old", "OS_USER_DOMAIN_NAME": "d", "OS_INTERFACE": "internal",
			},
			want: cloud.Login{
				AuthURL: "http://192.0.2.1:5000/v3", Username: "u", Password: "p", Project: "new",
				UserDomainName: "d", EndpointType: "internal",
			},
		},
		"nothing": {fault: "neither a Cinder endpoint"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := cloud.FromEnv(tc.env)
			check(t, got, err, tc.want, tc.fault)
		})
	}
}

func check(t *testing.T, got cloud.Login, err error, want cloud.Login, fault string) {
	t.Helper()
	if fault != "" {
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Fatalf("error %v, want %q in it", err, fault)
		}
		if strings.Contains(err.Error(), "hush") {
			t.Fatalf("the error shows a value: %v", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	// cmp compares the text of a Secret, it does not print it through String.
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestSecretIsNeverPrinted(t *testing.T) {
	login := cloud.Login{Password: "hush", AppCredentialSecret: "hush"}
	encoded, err := json.Marshal(login)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "login", login, "password", login.Password)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "login", login, "password", login.Password)
	all := fmt.Sprintf("%s %v %+v %#v %q ", login, login, login, login, login.Password) + string(encoded) + log.String()
	if strings.Contains(all, "hush") {
		t.Errorf("a printer shows the secret: %s", all)
	}
	if login.Password.Reveal() != "hush" {
		t.Error("Reveal does not")
	}
}
