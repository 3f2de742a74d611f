package credentials_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
)

// files returns the files of a login.
func files(name string) ([]byte, error) {
	there := map[string]string{
		"clouds.yaml": "clouds:\n  one:\n    auth: {auth_url: http://k/v3, username: u, password: p, project_name: t}\n" +
			"    region_name: R\n    interface: internalURL\n    verify: false\n    identity_api_version: 3\n",
		"junk.pem": "junk",
	}
	text, ok := there[name]
	if !ok {
		return nil, fmt.Errorf("read %s: %w", name, fs.ErrNotExist)
	}
	return []byte(text), nil
}

func TestFromEnvReadsTheVariablesOfTheClients(t *testing.T) {
	tests := map[string]struct {
		env   map[string]string
		want  credentials.Login
		fault string
	}{
		"without keystone": {
			env:  map[string]string{"OS_CINDER_ENDPOINT": "http://192.0.2.1:8776/v3", "OS_TENANT_NAME": "admin"},
			want: credentials.Login{Endpoint: "http://192.0.2.1:8776/v3", Project: "admin"},
		},
		"keystone": {
			env: map[string]string{
				"OS_AUTH_URL": "http://192.0.2.1:5000/v3", "OS_USERNAME": "u", "OS_PASSWORD": "p",
				"OS_PROJECT_NAME": "new", "OS_TENANT_NAME": "old", "OS_USER_DOMAIN_NAME": "d", "OS_INTERFACE": "internal",
			},
			want: credentials.Login{
				AuthURL: "http://192.0.2.1:5000/v3", Username: "u", Password: "p", Project: "new",
				UserDomainName: "d", EndpointType: "internal",
			},
		},
		"a cloud of a clouds.yaml": {
			env: map[string]string{"OS_CLOUD": "one", "OS_PROJECT_NAME": "mine", "OS_INSECURE": "false"},
			want: credentials.Login{
				AuthURL: "http://k/v3", Username: "u", Password: "p", Project: "mine", Region: "R", EndpointType: "internal",
			},
		},
		"a region of a cloud, a token and a domain": {
			env: map[string]string{
				"OS_AUTH_URL": "http://k/v3", "OS_TOKEN": "x", "OS_PROJECT_NAME": "p", "OS_DEFAULT_DOMAIN": "d", "OS_INSECURE": "yes",
			},
			want: credentials.Login{AuthURL: "http://k/v3", Token: "x", Project: "p", DefaultDomain: "d", Insecure: true},
		},
		"without keystone, by the type": {
			env:  map[string]string{"OS_AUTH_TYPE": "none", "OS_AUTH_URL": "http://k/v3", "OS_CINDER_ENDPOINT": "http://c/v3"},
			want: credentials.Login{Endpoint: "http://c/v3"},
		},
		"an application credential, by the type": {
			env: map[string]string{
				"OS_AUTH_TYPE": "v3applicationcredential", "OS_AUTH_URL": "http://k/v3", "OS_PASSWORD": "p", "OS_USERNAME": "u",
				"OS_APPLICATION_CREDENTIAL_ID": "i", "OS_APPLICATION_CREDENTIAL_SECRET": "s",
			},
			want: credentials.Login{AuthURL: "http://k/v3", Username: "u", AppCredentialID: "i", AppCredentialSecret: "s"},
		},
		"a token of a cloud, by the type": {
			env:  map[string]string{"OS_CLOUD": "one", "OS_AUTH_TYPE": "v3token", "OS_TOKEN": "x"},
			want: credentials.Login{AuthURL: "http://k/v3", Username: "u", Token: "x", Project: "t", Region: "R", EndpointType: "internal", Insecure: true},
		},
		"another endpoint than the catalog's": {
			env: map[string]string{
				"OS_AUTH_URL": "http://k/v3", "OS_TOKEN": "x", "OS_BLOCK_STORAGE_ENDPOINT_OVERRIDE": "http://c/v3/%(project_id)s",
			},
			want: credentials.Login{AuthURL: "http://k/v3", Token: "x", Endpoint: "http://c/v3"},
		},
		"OpenID Connect": {
			env:   map[string]string{"OS_AUTH_TYPE": "v3oidcpassword", "OS_AUTH_URL": "http://k/v3", "OS_PASSWORD": "hush"},
			fault: `auth_type "v3oidcpassword" is not supported (auth_type, OS_AUTH_TYPE): use v3password, v3token, v3applicationcredential or none`,
		},
		"a truth that is none": {env: map[string]string{"OS_INSECURE": "hush"}, fault: "OS_INSECURE must be true or false"},
		"a secret in the query": {
			env: map[string]string{"OS_CINDER_ENDPOINT": "http://c/v3?token=hush"}, fault: "Cinder endpoint must end in /v3, without a query",
		},
		"a secret in the fragment": {
			env: map[string]string{"OS_AUTH_URL": "http://k/v3#hush", "OS_TOKEN": "x"}, fault: "keystone URL must end in /v3, without a query",
		},
		"nothing": {fault: "neither a Cinder endpoint"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := credentials.FromEnv(tc.env, files)
			check(t, got, err, tc.want, tc.fault)
		})
	}
}

func check(t *testing.T, got credentials.Login, err error, want credentials.Login, fault string) {
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
	login := credentials.Login{Password: "hush", AppCredentialSecret: "hush"}
	encoded, err := json.Marshal(login)
	if err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "login", login, "password", login.Password)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "login", login, "password", login.Password)
	all := fmt.Sprintf("%v %v %+v %#v %q ", login, login, login, login, login.Password) + string(encoded) + log.String()
	if strings.Contains(all, "hush") {
		t.Errorf("a printer shows the secret: %s", all)
	}
	if login.Password.Reveal() != "hush" {
		t.Error("Reveal does not")
	}
}

// The four examples of standalone-cinder's documents, literally. Only the version in their URLs no
// longer exists, and the error says by what to replace it. Then they work.
func TestClassicExamplesAreRead(t *testing.T) {
	config := func(text string) (credentials.Login, error) {
		return credentials.FromConfig("cloud.conf", []byte(text), "", files)
	}
	env := func(text string) (credentials.Login, error) {
		vars := map[string]string{}
		for line := range strings.Lines(text) {
			if name, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok {
				vars[name] = value
			}
		}
		return credentials.FromEnv(vars, files)
	}
	keystone := credentials.Login{
		AuthURL: "http://keystone-host:5000/v3", Username: "admin", Password: "Passw0rd!", Region: "RegionOne",
		ProjectID: "637b7373213d439d8119285244481456",
	}
	noauth := credentials.Login{Endpoint: "http://cinder-host:8776/v3", Username: "admin", Project: "admin"}
	tests := map[string]struct {
		read func(string) (credentials.Login, error)
		text string
		dead string
		want credentials.Login
	}{
		"keystone auth via cloudconfig": {config, `# Example configuration: keystone auth via cloudconfig
[Global]
auth-url=http://keystone-host:5000/v2.0
username=admin
password=Passw0rd!
region=RegionOne
tenant-id=637b7373213d439d8119285244481456
`, "v2.0", keystone},
		"noauth via cloudconfig": {config, `# Example configuration: noauth via cloudconfig
[Global]
cinder-endpoint=http://cinder-host:8776/v2
username=admin
tenant-name=admin
`, "v2", noauth},
		"keystone auth via environment variables": {env, `# Example configuration: keystone auth via environment variables
OS_AUTH_URL=http://keystone-host:5000/v2.0
OS_USERNAME=admin
OS_PASSWORD=Passw0rd!
OS_TENANT_ID=637b7373213d439d8119285244481456
OS_REGION_NAME=RegionOne
`, "v2.0", keystone},
		"noauth via environment variables": {env, `# Example configuration: noauth via environment variables
OS_CINDER_ENDPOINT=http://cinder-host:8776/v2
OS_USERNAME=admin
OS_TENANT_NAME=admin
`, "v2", noauth},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := tc.read(tc.text)
			live := tc.want.AuthURL + tc.want.Endpoint
			if err == nil || !strings.Contains(err.Error(), "names the API "+tc.dead+", which no longer exists: write \""+live+"\"") {
				t.Errorf("the dead version: %v", err)
			}
			got, err := tc.read(strings.Replace(tc.text, "/"+tc.dead, "/v3", 1))
			check(t, got, err, tc.want, "")
		})
	}
}
