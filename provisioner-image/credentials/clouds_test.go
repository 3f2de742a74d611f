package credentials_test

import (
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
)

// auth is the least that a cloud needs.
const auth = "auth: {auth_url: http://k/v3, username: u, password: p, project_name: t}"

// fromAuth is what auth says.
func fromAuth(edit func(*credentials.Login)) credentials.Login {
	l := credentials.Login{AuthURL: "http://k/v3", Username: "u", Password: "p", Project: "t"}
	if edit != nil {
		edit(&l)
	}
	return l
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
		"without keystone, by the endpoint of the service": {
			text: "clouds: {a: {auth_type: none, block_storage_endpoint_override: http://c/v3}}", want: credentials.Login{Endpoint: "http://c/v3"},
		},
		"without keystone, whatever else is named": {
			text: "clouds: {a: {auth_type: noauth, auth: {endpoint: http://c/v3, auth_url: http://k/v3}}}", want: credentials.Login{Endpoint: "http://c/v3"},
		},
		"by keystone, at another endpoint than the catalog's": {
			text: "clouds: {a: {" + auth + ", block_storage_endpoint_override: 'https://c/volume/v3/%(project_id)s'}}",
			want: fromAuth(func(l *credentials.Login) { l.Endpoint = "https://c/volume/v3" }),
		},
		"by keystone, at an endpoint by its older name": {
			text: "clouds: {a: {" + auth + ", volume_endpoint_override: 'https://c/v3/$(tenant_id)s/'}}",
			want: fromAuth(func(l *credentials.Login) { l.Endpoint = "https://c/v3" }),
		},
		"at an endpoint without a version": {
			text: "clouds: {a: {" + auth + ", block_storage_endpoint_override: https://c}}", fault: `Cinder endpoint "https://c" does not end in /v3: write "https://c/v3"`,
		},
		"by a password, whatever else is named": {
			text: "clouds: {a: {auth_type: v3password, auth: {auth_url: http://k/v3, username: u, password: p, project_name: t, token: x," +
				" application_credential_secret: s}}}",
			want: fromAuth(nil),
		},
		"by an application credential, whatever else is named": {
			text: "clouds: {a: {auth_type: v3applicationcredential, auth: {auth_url: http://k/v3, application_credential_id: i," +
				" application_credential_secret: s, password: p, token: x}}}",
			want: credentials.Login{AuthURL: "http://k/v3", AppCredentialID: "i", AppCredentialSecret: "s"},
		},
		"by a token": {
			text: "clouds: {a: {auth_type: token, auth: {auth_url: http://k/v3, token: x, password: old, project_name: t}}}",
			want: credentials.Login{AuthURL: "http://k/v3", Token: "x", Project: "t"},
		},
		"by a trust": {
			text: "clouds: {a: {auth: {auth_url: http://k/v3, username: u, password: p, trust_id: x}}}",
			want: credentials.Login{AuthURL: "http://k/v3", Username: "u", Password: "p", TrustID: "x"},
		},
		"old names, and domains": {
			text: "clouds: {a: {auth: {auth_url: http://k/v3, username: u, password: p, tenant_name: t, tenant_id: 1f, user_domain_name: d, domain_id: e," +
				" default_domain: f}}}",
			want: fromAuth(func(l *credentials.Login) {
				l.ProjectID, l.UserDomainName, l.DomainID, l.DefaultDomain = "1f", "d", "e", "f"
			}),
		},
		"what only looks like a number": {
			text: "clouds: {a: {auth: {auth_url: http://k/v3, username: 007, password: 0123, project_name: 1e3}}}",
			want: credentials.Login{AuthURL: "http://k/v3", Username: "007", Password: "0123", Project: "1e3"},
		},
		"a truth in quotes": {
			text: "clouds: {a: {" + auth + `, verify: "False"}}`, want: fromAuth(func(l *credentials.Login) { l.Insecure = true }),
		},
		"several interfaces": {
			text: "clouds: {a: {" + auth + ", interface: [internal, public]}}",
			want: fromAuth(func(l *credentials.Login) { l.EndpointType = "internal" }),
		},
		"an anchor":     {text: "x-base: &base {" + auth + "}\nclouds: {a: {" + auth + "}}", fault: "line 1 has an anchor (&) or an alias (*)"},
		"too many keys": {text: "clouds: {a: {" + auth + "}}\nx: {" + manyKeys() + "}", fault: "line 2 has a mapping with 501 keys, and the limit is 500"},
		"too large":     {text: "clouds: {a: {" + auth + "}}\n#" + strings.Repeat("x", 256<<10), fault: "the limit is 262144"},
		"settings of other services": {
			text: "cache: {expiration_time: 3600}\nclouds: {a: {" + auth + ", placement_api_version: 1.29, compute_endpoint_override: x, networks: [{name: n}]}}",
			want: fromAuth(nil),
		},
		"the first of its regions": {
			text: "clouds: {a: {" + auth + ", regions: [R1, R2]}}", want: fromAuth(func(l *credentials.Login) { l.Region = "R1" }),
		},
		"values of its region": {
			text: "clouds: {a: {" + auth + ", region_name: R2, verify: true, regions: [R1, {name: R2, values: {auth: {project_name: two}, verify: 'False'}}]}}",
			want: fromAuth(func(l *credentials.Login) { l.Region, l.Project, l.Insecure = "R2", "two", true }),
		},
		"which of them": {text: "clouds: {a: {auth: {}}, b: {auth: {}}}", fault: `no cloud ""; it has a, b`},
		"two documents": {
			text: "clouds: {a: {" + auth + "}}\n---\nclouds: {b: {" + auth + "}}\n", fault: "clouds.yaml: line 3 belongs to a second YAML document",
		},
		"no YAML":                     {text: "clouds: {a: hush", fault: "line 1 is not valid in a clouds.yaml"},
		"another form":                {text: "clouds: hush", fault: "line 1 is not valid in a clouds.yaml"},
		"another form of a value":     {text: "clouds:\n  a:\n    auth: {password: [hush]}", fault: "line 3 is not valid in a clouds.yaml"},
		"an entry that is empty":      {text: "clouds: {a: }", fault: "neither a Cinder endpoint"},
		"an entry that holds itself":  {text: "clouds: {a: &a {regions: [{name: r, values: *a}]}}", fault: "line 1 has an anchor (&)"},
		"another protocol":            {text: "clouds: {a: {auth_type: v3oidcpassword, auth: {}}}", fault: `auth_type "v3oidcpassword" is not supported`},
		"a dead protocol":             {text: "clouds: {a: {auth_type: v2password, auth: {}}}", fault: `auth_type "v2password" is not supported`},
		"another scope of the system": {text: "clouds: {a: {auth: {auth_url: http://k/v3, username: u, password: p, system_scope: hush}}}", fault: "the system scope must be all"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := credentials.FromClouds("clouds.yaml", []byte(tc.text), tc.which, files)
			check(t, got, err, tc.want, tc.fault)
		})
	}
}

// folder reads files of a folder with these texts.
func folder(texts map[string]string) credentials.Files {
	return func(name string) ([]byte, error) {
		text, ok := texts[name]
		if !ok {
			return nil, fmt.Errorf("read %s: %w", name, fs.ErrNotExist)
		}
		return []byte(text), nil
	}
}

func TestFromCloudsReadsTheFilesBesideIt(t *testing.T) {
	const (
		user    = "clouds: {a: {auth: {auth_url: http://k/v3, username: u, project_name: t}, region_name: R}}"
		profile = "clouds: {a: {profile: vendor, auth: {username: u, password: p, project_name: t}, region_name: R}}"
		public  = "public-clouds: {vendor: {auth: {auth_url: http://vendor/v3, password: none}, region_name: V, interface: internal, regions: [V, {name: R, values: {auth: {domain_id: d}}}]}}"
	)
	tests := map[string]struct {
		text  string
		files map[string]string
		want  credentials.Login
		fault string
	}{
		"the password": {
			text: user, files: map[string]string{"secure.yaml": "clouds: {a: {auth: {password: p}}, b: {auth: {password: q}}}"},
			want: fromAuth(func(l *credentials.Login) { l.Region = "R" }),
		},
		"what is in both": {
			text: user, files: map[string]string{"secure.yaml": "clouds: {a: {auth: {username: v, password: p}}}"},
			want: fromAuth(func(l *credentials.Login) { l.Region, l.Username = "R", "v" }),
		},
		"nothing of this cloud": {
			text: user, files: map[string]string{"secure.yaml": "clouds: {b: {auth: {password: q}}}"}, fault: "the login has no password",
		},
		"secrets that are empty": {text: user, files: map[string]string{"secure.yaml": "clouds: {a: {auth: }}"}, fault: "the login has no password"},
		"no secrets in form": {
			text: user, files: map[string]string{"secure.yaml": "clouds:\n  a: {auth: hush}"}, fault: "line 2 is not valid",
		},
		"the vendor's profile": {
			text: profile, files: map[string]string{"clouds-public.yaml": public},
			want: credentials.Login{
				AuthURL: "http://vendor/v3", Username: "u", Password: "p", Project: "t", Region: "R", EndpointType: "internal", DomainID: "d",
			},
		},
		"the profile by its old name": {
			text: strings.Replace(profile, "profile", "cloud", 1), files: map[string]string{"clouds-public.yaml": public},
			want: credentials.Login{
				AuthURL: "http://vendor/v3", Username: "u", Password: "p", Project: "t", Region: "R", EndpointType: "internal", DomainID: "d",
			},
		},
		"the profile, named beside the secrets": {
			text: strings.Replace(profile, "profile: vendor, ", "", 1),
			files: map[string]string{
				"clouds-public.yaml": strings.Replace(public, "domain_id: d", "password: q", 1), "secure.yaml": "clouds: {a: {profile: vendor, auth: {password: p}}}",
			},
			want: credentials.Login{
				AuthURL: "http://vendor/v3", Username: "u", Password: "p", Project: "t", Region: "R", EndpointType: "internal",
			},
		},
		"no such profile": {text: profile, fault: "the profile of cloud a is not used: no clouds-public.yaml beside the file contains it"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := credentials.FromClouds("clouds.yaml", []byte(tc.text), "", folder(tc.files))
			check(t, got, err, tc.want, tc.fault)
		})
	}
}

func TestFromCloudsWarnsOfWhatItDoesNotRead(t *testing.T) {
	tests := map[string]struct{ text, secure, says string }{
		"a key of a cloud": {"clouds: {a: {" + auth + ", regoin_name: hush}}", "", `clouds.yaml: key "regoin_name" in cloud a is unknown, and is ignored; did you mean "region_name"?`},
		"a key of auth": {
			"clouds: {a: {auth: {auth_url: http://k/v3, username: u, password: p, project_name: t, pasword: hush}}}", "",
			`clouds.yaml: key "pasword" in auth of cloud a is unknown, and is ignored; did you mean "password"?`,
		},
		"a key without a value, as the end of a password is in one line": {
			"clouds: {a: {auth: {auth_url: http://k/v3, username: u, project_name: t, password: p,hush}}}", "",
			`clouds.yaml: a key without a value in auth of cloud a is unknown, and is ignored`,
		},
		"a key of the file":    {"clouds: {a: {" + auth + "}}\ncluods: hush", "", `clouds.yaml: key "cluods" in the file is unknown, and is ignored; did you mean "clouds"?`},
		"a key of the secrets": {"clouds: {a: {" + auth + "}}", "clouds: {a: {auth: {pasword: hush}}}", `secure.yaml: key "pasword" in auth of cloud a is unknown, and is ignored; did you mean "password"?`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			beside := map[string]string{}
			if tc.secure != "" {
				beside["secure.yaml"] = tc.secure
			}
			got, err := credentials.FromClouds("clouds.yaml", []byte(tc.text), "", folder(beside))
			check(t, got, err, fromAuth(func(l *credentials.Login) { l.Warnings = []string{tc.says} }), "")
		})
	}
}

// The whole system is a scope that gophercloud knows. Few releases of Cinder do.
func TestSystemScopeIsAWarning(t *testing.T) {
	const text = "clouds: {a: {auth: {auth_url: http://k/v3, username: u, password: p, system_scope: all}}}"
	got, err := credentials.FromClouds("clouds.yaml", []byte(text), "", files)
	if err != nil || got.SystemScope != "all" || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0], "has no project") {
		t.Errorf("%+v, %v", got, err)
	}
}

// The process's own environment and files have no part in what a clouds.yaml says.
func TestFromCloudsReadsNothingElse(t *testing.T) {
	for _, name := range []string{"OS_CLOUD", "OS_REGION_NAME", "OS_INTERFACE", "OS_CLIENT_CONFIG_FILE", "OS_CACERT", "OS_CERT", "OS_KEY"} {
		t.Setenv(name, "/dev/null")
	}
	got, err := credentials.FromClouds("clouds.yaml", []byte("clouds: {a: {"+auth+"}}"), "", folder(nil))
	check(t, got, err, fromAuth(nil), "")
	_, err = credentials.FromClouds("clouds.yaml", []byte("clouds: {a: {"+auth+", cacert: /dev/null}}"), "", folder(nil))
	check(t, got, err, credentials.Login{}, "read /dev/null: file does not exist")
}

// manyKeys returns one more entry of a mapping than it may have.
func manyKeys() string {
	var out strings.Builder
	for i := range 501 {
		fmt.Fprintf(&out, "k%d: ,", i)
	}
	return out.String()
}
