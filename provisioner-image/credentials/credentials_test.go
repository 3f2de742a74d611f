package credentials_test

import (
	"encoding/json"
	"fmt"
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
		return nil, fmt.Errorf("read %s: no such file", name)
	}
	return []byte(text), nil
}

func TestFromConfigReadsTheCloudProvidersFormat(t *testing.T) {
	tests := map[string]struct {
		config string
		want   credentials.Login
		fault  string
	}{
		"the classic example without keystone": {
			config: "[Global]\ncinder-endpoint=http://192.0.2.1:8776/v3\ntenant-name=admin\n",
			want:   credentials.Login{Endpoint: "http://192.0.2.1:8776/v3", Project: "admin"},
		},
		"keystone, with comments, quotes and any case": {
			config: "; who\n[ global ] # where\nAuth-URL = \"https://k.example/identity/v3/\"\nusername=u\n" +
				"password = \"a#b;c\\\"d\\\\e\"\ntenant-id = 1f ; inline\nregion=R\n",
			want: credentials.Login{
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
		"the other spelling of the endpoint, in the cloud provider's own file": {
			config: "[BlockStorage]\nendpoint=http://192.0.2.1:8776/v3\nbs-version=v3\n[LoadBalancer]\nuse-octavia=true\n" +
				"[LoadBalancerClass \"in\"]\nfloating-network-id=x\n[Global]\ntenant-id=1f\n",
			want: credentials.Login{Endpoint: "http://192.0.2.1:8776/v3", ProjectID: "1f"},
		},
		"a clouds.yaml beside it": {
			config: "[Global]\nuse-clouds=true\nclouds-file=clouds.yaml\ncloud=one\nregion=S\n",
			want: credentials.Login{
				AuthURL: "http://k/v3", Username: "u", Password: "p", Project: "t", Region: "S",
				EndpointType: "internal", Insecure: true,
			},
		},
		"no such cloud":               {config: "[Global]\nuse-clouds=true\ncloud=two\n", fault: `no cloud "two" but one`},
		"no such file":                {config: "[Global]\nuse-clouds=true\nclouds-file=x\n", fault: "read x"},
		"a truth that is none":        {config: "[Global]\nuse-clouds=hush\n", fault: "use-clouds is neither true nor false"},
		"a CA file that is none":      {config: "[Global]\ncinder-endpoint=http://a/v3\nca-file=junk.pem", fault: "holds no certificate"},
		"a CA file that is not there": {config: "[Global]\ncinder-endpoint=http://a/v3\nca-file=/etc/ssl/ca.pem", fault: "read /etc/ssl/ca.pem"},
		"half a pair":                 {config: "[Global]\ncinder-endpoint=http://a/v3\ncert-file=junk.pem", fault: "are not a pair"},
		"a keystone without a version": {
			config: "[Global]\nauth-url=http://k/identity\nusername=u\npassword=p\ntenant-id=1f\nos-endpoint-type=internalURL",
			want:   credentials.Login{AuthURL: "http://k/identity/v3", Username: "u", Password: "p", ProjectID: "1f", EndpointType: "internal"},
		},
		"an endpoint type that is none": {
			config: "[Global]\nauth-url=http://k/v3\nusername=u\npassword=p\ntenant-id=1f\nos-endpoint-type=private",
			fault:  `endpoint type "private"`,
		},
		"an application credential without a name": {
			config: "[Global]\nauth-url=http://k/v3\napplication-credential-secret=hush", fault: "neither ID nor name",
		},
		"an application credential without its user": {
			config: "[Global]\nauth-url=http://k/v3\napplication-credential-secret=hush\napplication-credential-name=n", fault: "needs its user",
		},
		"no version": {config: "[Global]\ncinder-endpoint=http://192.0.2.1:8776", fault: `write "http://192.0.2.1:8776/v3"`},
		"a project in the URL": {
			config: "[Global]\ncinder-endpoint=http://c:8776/volume/v3/637b7373213d439d8119285244481456/\ntenant-name=admin\n",
			fault:  `write "http://c:8776/volume/v3", and name the project by tenant-id or tenant-name, not by "637b7373213d439d8119285244481456"`,
		},
		"a placeholder of a project in the dead URL": {
			config: "[Global]\ncinder-endpoint=http://c:8776/v2/%(tenant_id)s\n", fault: `is no http or https URL`,
		},
		"a project in the dead URL": {
			config: "[Global]\ncinder-endpoint=http://c:8776/v2/1f\n", fault: `names the API v2, which is gone: write "http://c:8776/v3", and name`,
		},
		"no URL":          {config: "[Global]\ncinder-endpoint=192.0.2.1", fault: "is no http or https URL"},
		"unknown key":     {config: "[Global]\ncinder-endpoints=x", fault: `line 2: key "cinder-endpoints" is unknown`},
		"unknown section": {config: "[Globl]\nregion=x", fault: `line 2: key "region" in section [globl] is unknown`},
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
			got, err := credentials.FromConfig("cloud.conf", []byte(tc.config), files)
			check(t, got, err, tc.want, tc.fault)
		})
	}
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

// The four examples of standalone-cinder's documents, literally. Only the version in their URLs no longer exists, and
// the error says by what to replace it. Then they work.
func TestClassicExamplesAreRead(t *testing.T) {
	config := func(text string) (credentials.Login, error) {
		return credentials.FromConfig("cloud.conf", []byte(text), files)
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
			if err == nil || !strings.Contains(err.Error(), "names the API "+tc.dead+", which is gone: write \""+live+"\"") {
				t.Errorf("the dead version: %v", err)
			}
			got, err := tc.read(strings.Replace(tc.text, "/"+tc.dead, "/v3", 1))
			check(t, got, err, tc.want, "")
		})
	}
}

func TestFromCloudsReadsOneCloud(t *testing.T) {
	one, err := files("clouds.yaml")
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		text  string
		which string
		want  credentials.Login
		fault string
	}{
		"the only one": {text: string(one), want: credentials.Login{
			AuthURL: "http://k/v3", Username: "u", Password: "p", Project: "t", Region: "R", EndpointType: "internal", Insecure: true,
		}},
		"by an application credential": {
			text: "clouds: {a: {auth_type: v3applicationcredential, auth: {auth_url: http://k/v3, application_credential_id: i," +
				" application_credential_secret: s}}, b: {auth: {}}}",
			which: "a",
			want:  credentials.Login{AuthURL: "http://k/v3", AppCredentialID: "i", AppCredentialSecret: "s"},
		},
		"without keystone": {
			text: "clouds: {a: {auth_type: none, auth: {endpoint: http://c/v3}}}", want: credentials.Login{Endpoint: "http://c/v3"},
		},
		"which of them":    {text: "clouds: {a: {auth: {}}, b: {auth: {}}}", fault: `no cloud "" but a, b`},
		"unknown key":      {text: "clouds: {a: {auth: {pasword: hush}}}", fault: `key "pasword" is unknown`},
		"no YAML":          {text: "clouds: hush", fault: "no valid clouds.yaml"},
		"another protocol": {text: "clouds: {a: {auth_type: v3oidcpassword, auth: {}}}", fault: `auth_type "v3oidcpassword" is not supported`},
		"a vendor profile": {text: "clouds: {a: {profile: vexxhost, auth: {}}}", fault: `key "profile" is unknown`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := credentials.FromClouds("clouds.yaml", []byte(tc.text), tc.which, files)
			check(t, got, err, tc.want, tc.fault)
		})
	}
}
