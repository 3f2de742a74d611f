package credentials_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
)

// sent returns what gophercloud sends to keystone for a login.
func sent(t *testing.T, login credentials.Login) string {
	t.Helper()
	options := login.AuthOptions()
	scope, err := options.ToTokenV3ScopeMap()
	if err != nil {
		t.Fatal(err)
	}
	request, err := options.ToTokenV3CreateMap(scope)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// with returns the environment of a login and what is added to it.
func with(login map[string]string, more ...string) map[string]string {
	out := map[string]string{"OS_AUTH_URL": "http://k/v3"}
	maps.Copy(out, login)
	for i := 0; i < len(more); i += 2 {
		out[more[i]] = more[i+1]
	}
	return out
}

// Gophercloud sends no scope as soon as the ID or the name of an application credential is there:
// keystone gives a token for the user's default project, or for none.
func TestOneLoginIsUsedWhole(t *testing.T) {
	password := map[string]string{"OS_USERNAME": "u", "OS_PASSWORD": "p", "OS_PROJECT_ID": "1f"}
	token := map[string]string{"OS_TOKEN": "x", "OS_PROJECT_ID": "1f"}
	credential := map[string]string{"OS_APPLICATION_CREDENTIAL_ID": "i", "OS_APPLICATION_CREDENTIAL_SECRET": "s"}
	const (
		id, name, secret = "OS_APPLICATION_CREDENTIAL_ID", "OS_APPLICATION_CREDENTIAL_NAME", "OS_APPLICATION_CREDENTIAL_SECRET"
		kind             = "OS_AUTH_TYPE"
	)
	tests := map[string]struct {
		env    map[string]string
		method string
		scope  string
		warns  []string
	}{
		"a password, and an ID that is left over":       {with(password, id, "i"), "password", "1f", []string{id}},
		"a password, and a name that is left over":      {with(password, name, "n"), "password", "1f", []string{name}},
		"a password, and a credential":                  {with(password, id, "i", secret, "s"), "password", "1f", []string{id, secret}},
		"a password by the type, and an ID":             {with(password, id, "i", kind, "password"), "password", "1f", nil},
		"a password by the type, and a credential":      {with(password, id, "i", name, "n", secret, "s", kind, "v3password"), "password", "1f", nil},
		"a token, and an ID that is left over":          {with(token, id, "i"), "token", "1f", []string{id}},
		"a token by the type, and a credential":         {with(token, id, "i", secret, "s", kind, "v3token"), "token", "1f", nil},
		"a token by the type, and a user":               {with(token, "OS_USERNAME", "u", "OS_USER_DOMAIN_NAME", "d", kind, "token"), "token", "1f", nil},
		"a credential, and a password without its user": {with(credential, "OS_PASSWORD", "p"), "application_credential", "", []string{"OS_PASSWORD"}},
		"a credential, and a user without a project": {
			with(credential, "OS_PASSWORD", "p", "OS_USERNAME", "u"), "application_credential", "", []string{"OS_PASSWORD"},
		},
		"a credential, and a token":   {with(credential, "OS_TOKEN", "x"), "application_credential", "", []string{"OS_TOKEN"}},
		"a credential, and a project": {with(credential, "OS_PROJECT_NAME", "t"), "application_credential", "", []string{"OS_PROJECT_NAME"}},
		"a credential, and a trust":   {with(credential, "OS_TRUST_ID", "t"), "application_credential", "", []string{"OS_TRUST_ID"}},
		"a credential by the type, and a password": {
			with(password, id, "i", secret, "s", kind, "v3applicationcredential"), "application_credential", "", []string{"OS_PROJECT_ID"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			login, err := credentials.FromEnv(tc.env, files)
			if err != nil {
				t.Fatal(err)
			}
			request := sent(t, login)
			if !strings.Contains(request, `"methods":["`+tc.method+`"]`) {
				t.Errorf("another login is sent than by %s: %s", tc.method, request)
			}
			if scoped := strings.Contains(request, `"scope":{"project":{"id":"1f"}}`); scoped != (tc.scope != "") {
				t.Errorf("the scope is not %q: %s", tc.scope, request)
			}
			warnings := strings.Join(login.Warnings, "\n")
			for _, name := range tc.warns {
				if !strings.Contains(warnings, name) {
					t.Errorf("no warning names %s: %q", name, warnings)
				}
			}
			if len(tc.warns) == 0 && warnings != "" {
				t.Errorf("a warning although the type says what is used: %q", warnings)
			}
		})
	}
}

func TestWhatALoginLacksIsNamed(t *testing.T) {
	none := map[string]string{}
	for name, tc := range map[string]struct {
		env  map[string]string
		says string
	}{
		"the secret of an application credential": {with(none, "OS_APPLICATION_CREDENTIAL_ID", "i"), "has no secret (application-credential-secret"},
		"the token of the type": {
			with(none, "OS_AUTH_TYPE", "v3token", "OS_PASSWORD", "hush"), `auth_type "v3token" needs token (OS_TOKEN), which is missing`,
		},
		"the secret of the type": {
			with(none, "OS_AUTH_TYPE", "v3applicationcredential", "OS_PASSWORD", "hush"), "needs application-credential-secret",
		},
		"the project of a password": {with(none, "OS_USERNAME", "u", "OS_PASSWORD", "hush"), "the login names no project"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := credentials.FromEnv(tc.env, files)
			check(t, got, err, credentials.Login{}, tc.says)
		})
	}
}

func TestSecretsThatNoKeystoneReadsAreAWarning(t *testing.T) {
	env := map[string]string{"OS_CINDER_ENDPOINT": "http://c/v3", "OS_USERNAME": "u", "OS_PASSWORD": "hush"}
	got, err := credentials.FromEnv(env, files)
	check(t, got, err, credentials.Login{Endpoint: "http://c/v3", Username: "u", Warnings: []string{
		"the environment: password (OS_PASSWORD) is not used: the login names no keystone (auth-url, OS_AUTH_URL)",
	}}, "")
}

// A Secret that a command made of a file has the file's line breaks, and one of --from-env-file its
// quotes.
func TestEndsOfAValueAreNotKeptSilently(t *testing.T) {
	base := map[string]string{"OS_USERNAME": "u", "OS_PASSWORD": "p", "OS_PROJECT_ID": "1f"}
	const broken = " has a line break at its end, which is removed: write the Secret without it"
	for name, tc := range map[string]struct {
		key, value string
		want       string
		says       string
	}{
		"a line break":            {"OS_PASSWORD", "q\n", "q", "the environment: password (OS_PASSWORD)" + broken},
		"one of Windows":          {"OS_PASSWORD", "q\r\n", "q", "the environment: password (OS_PASSWORD)" + broken},
		"double quotes":           {"OS_PASSWORD", `"q"`, `"q"`, "the environment: password (OS_PASSWORD) is in quotes, which are sent as a part of it"},
		"single quotes":           {"OS_PASSWORD", "'q'", "'q'", "the environment: password (OS_PASSWORD) is in quotes, which are sent as a part of it"},
		"a blank":                 {"OS_PASSWORD", "q ", "q ", "the environment: password (OS_PASSWORD) begins or ends with a blank"},
		"a quote of the password": {"OS_PASSWORD", `"q`, `"q`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := credentials.FromEnv(with(base, tc.key, tc.value), files)
			if err != nil {
				t.Fatal(err)
			}
			if said := strings.Join(got.Warnings, "\n"); !strings.HasPrefix(said, tc.says) || (said == "") != (tc.says == "") {
				t.Errorf("warnings %q, want %q", said, tc.says)
			}
			if got.Password.Reveal() != tc.want {
				t.Errorf("the password is %q, want %q", got.Password.Reveal(), tc.want)
			}
		})
	}
	got, err := credentials.FromEnv(with(base, "OS_AUTH_URL", "http://k/v3\n", "OS_INSECURE", "true\n", "OS_CLOUD", "one\n"), files)
	if err != nil || got.AuthURL != "http://k/v3" || !got.Insecure || got.Region != "R" || len(got.Warnings) != 2 {
		t.Errorf("line breaks at the end of a URL, a truth and a cloud: %v, %+v", err, got)
	}
	_, err = credentials.FromEnv(with(base, "OS_AUTH_URL", `"http://k/v3"`), files)
	if err == nil || !strings.Contains(err.Error(), "auth-url (OS_AUTH_URL) is in quotes") {
		t.Errorf("a URL in quotes: %v", err)
	}
}

func TestValueThatACommentMayHaveCutIsAWarning(t *testing.T) {
	const says = `cloud config cloud.conf: the value of key %q in [global] ends before a `
	for line, key := range map[string]string{
		"password=a#b":                  "password",
		"password=a;b":                  "password",
		"password=#b":                   "password",
		"password = a #b":               "password",
		"password = a # b":              "password",
		"Password=a#b":                  "password",
		`password="a"#b`:                "password",
		"region=a#b":                    "region",
		"region=a ;b":                   "region",
		"region=a # where":              "",
		"region=a ;":                    "",
		"# password=a#b":                "",
		`password="a#b"`:                "",
		"[LoadBalancer]\nregion=a#b":    "",
		"[Global \"x#y\"]\nregion=a":    "",
		"[BlockStorage]\nendpoint=a#b":  "endpoint",
		"[Networking] # here\n":         "",
		"tls-insecure # it has its own": "",
	} {
		text := "[Global]\n" + keystoneLogin + line + "\n"
		got, err := credentials.FromConfig("cloud.conf", []byte(strings.ReplaceAll(text, "\n", "\r\n")), "", files)
		said := strings.Join(got.Warnings, "\n")
		if err != nil {
			said += err.Error()
		}
		want := strings.Replace(says, "%q", `"`+key+`"`, 1)
		if key == "endpoint" {
			want = strings.Replace(want, "global", "blockstorage", 1)
		}
		if strings.Contains(said, want) != (key != "") || key == "" && strings.Contains(said, "begins a comment") {
			t.Errorf("%q: %s", line, said)
		}
	}
}

func TestURLThatWasCopiedFromARequestIsRefusedWithTheRightOne(t *testing.T) {
	for url, says := range map[string]string{
		"http://k/v3/auth/tokens":          `does not end in /v3: write "http://k/v3", without "auth/tokens"`,
		"http://k/identity/v3/auth/tokens": `write "http://k/identity/v3", without "auth/tokens"`,
		"http://k/v3.0":                    `does not end in /v3: write "http://k/v3"`,
		"http://k/v3.14/":                  `write "http://k/v3"`,
		"http://k/v2.0/tokens":             `names the API v2.0, which no longer exists: write "http://k/v3", without "tokens"`,
		"http://k/v2":                      `names the API v2, which no longer exists: write "http://k/v3"`,
		"http://k/v3?a=b":                  "without a query or a fragment",
		"http://k/v3?":                     "without a query or a fragment",
		"http://u:hush@k/v3/auth/tokens":   `write "http://u:xxxxx@k/v3"`,
		"http://k/v3//":                    "",
		"http://k/vault/":                  "",
		"http://k":                         "",
	} {
		got, err := credentials.FromEnv(with(map[string]string{"OS_TOKEN": "x"}, "OS_AUTH_URL", url), files)
		want := url
		if says == "" && !strings.Contains(url, "v3") {
			want = strings.TrimSuffix(url, "/") + "/v3"
		}
		check(t, got, err, credentials.Login{AuthURL: want, Token: "x"}, says)
	}
}

func TestVariablesThatAreNotReadAreAWarning(t *testing.T) {
	env := with(map[string]string{"OS_TOKEN": "x", "OS_VOLUME_API_VERSION": "3", "OS_REGIONNAME": "R", "HOME": "/"})
	got, err := credentials.FromEnv(env, files)
	check(t, got, err, credentials.Login{AuthURL: "http://k/v3", Token: "x", Warnings: []string{
		`the environment: variable OS_REGIONNAME is unknown, and is ignored; did you mean "OS_REGION_NAME"?`,
	}}, "")
	const says = "the environment: OS_AUTH_URL, OS_TOKEN are not used: the login is that of the file cloud.conf"
	env["OS_CLOUD"] = "one"
	if said := credentials.UnusedVars(env, "cloud.conf"); len(said) != 1 || said[0] != says {
		t.Errorf("%q, want %q", said, says)
	}
}
