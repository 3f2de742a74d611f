package credentials_test

import (
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
)

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
			fault:  `"http://192.0.2.1:8776/v2" names the API v2, which no longer exists: write "http://192.0.2.1:8776/v3"`,
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
		"no such cloud":               {config: "[Global]\nuse-clouds=true\ncloud=two\n", fault: `no cloud "two"; it has one`},
		"no such file":                {config: "[Global]\nuse-clouds=true\nclouds-file=x\n", fault: "read x"},
		"a truth that is none":        {config: "[Global]\nuse-clouds=hush\n", fault: `key "use-clouds" in [Global] must have a value, which must be true or false if the key is a switch`},
		"a CA file that is none":      {config: "[Global]\ncinder-endpoint=http://a/v3\nca-file=junk.pem", fault: "has no PEM certificate"},
		"a CA file that is not there": {config: "[Global]\ncinder-endpoint=http://a/v3\nca-file=/etc/ssl/ca.pem", fault: "read /etc/ssl/ca.pem"},
		"half a pair":                 {config: "[Global]\ncinder-endpoint=http://a/v3\ncert-file=junk.pem", fault: "are not a PEM key pair"},
		"a keystone without a version": {
			config: "[Global]\nauth-url=http://k/identity\nusername=u\npassword=p\ntenant-id=1f\nos-endpoint-type=internalURL",
			want:   credentials.Login{AuthURL: "http://k/identity/v3", Username: "u", Password: "p", ProjectID: "1f", EndpointType: "internal"},
		},
		"an endpoint type that is none": {
			config: "[Global]\nauth-url=http://k/v3\nusername=u\npassword=p\ntenant-id=1f\nos-endpoint-type=private",
			fault:  `the endpoint type must be`,
		},
		"an application credential without a name": {
			config: "[Global]\nauth-url=http://k/v3\napplication-credential-secret=hush", fault: "neither an ID nor a name",
		},
		"an application credential without its user": {
			config: "[Global]\nauth-url=http://k/v3\napplication-credential-secret=hush\napplication-credential-name=n", fault: "needs the name of its user",
		},
		"no version": {config: "[Global]\ncinder-endpoint=http://192.0.2.1:8776", fault: `write "http://192.0.2.1:8776/v3"`},
		"a project in the URL": {
			config: "[Global]\ncinder-endpoint=http://c:8776/volume/v3/637b7373213d439d8119285244481456/\ntenant-name=admin\n",
			fault:  `write "http://c:8776/volume/v3", and name the project by tenant-id or tenant-name, not by "637b7373213d439d8119285244481456"`,
		},
		"a placeholder of a project in the dead URL": {
			config: "[Global]\ncinder-endpoint=http://c:8776/v2/%(tenant_id)s\n", fault: `names the API v2, which no longer exists: write "http://c:8776/v3"`,
		},
		"keystone, and the endpoint beside it": {
			config: "[Global]\nauth-url=http://k/v3\nusername=u\npassword=p\ntenant-name=t\ncinder-endpoint=http://c:8776/v3/%(project_id)s\n",
			want:   fromAuth(func(l *credentials.Login) { l.Endpoint = "http://c:8776/v3" }),
		},
		"a project in the dead URL": {
			config: "[Global]\ncinder-endpoint=http://c:8776/v2/1f\n", fault: `names the API v2, which no longer exists: write "http://c:8776/v3", and name`,
		},
		"a password in the dead URL": {
			config: "[Global]\ncinder-endpoint=http://u:hush@c:8776/v2\n",
			fault:  `"http://u:xxxxx@c:8776/v2" names the API v2, which no longer exists: write "http://u:xxxxx@c:8776/v3"`,
		},
		"a password in a URL of a project": {
			config: "[Global]\ncinder-endpoint=http://u:hush@c:8776/v3/1f\n", fault: `write "http://u:xxxxx@c:8776/v3", and name`,
		},
		"a password in a URL without a version": {config: "[Global]\ncinder-endpoint=http://u:hush@c\n", fault: `write "http://u:xxxxx@c/v3"`},
		"a password in a URL without a scheme":  {config: "[Global]\ncinder-endpoint=u:hush@c\n", fault: "must be an http or https URL"},
		"a password that no URL can have":       {config: "[Global]\ncinder-endpoint=http://u:%hush@c/v3\n", fault: "must be an http or https URL"},
		"no URL":                                {config: "[Global]\ncinder-endpoint=192.0.2.1", fault: "must be an http or https URL"},
		"a key without a value":                 {config: "[Global]\nregion\n", fault: `key "region" in [Global] must have a value`},
		"a value that does not end":             {config: "[Global]\npassword=\"hush", fault: "line 2: the value's closing quote is missing"},
		"a section that does not end":           {config: "[Global", fault: "line 1: it is no section"},
		"a key above all sections":              {config: "region=hush", fault: "line 1: it belongs to no section"},
		"a line that is none":                   {config: "[Global]\nregion=x\n$hush", fault: "line 3: it must be key = value"},
		"an escape that is none":                {config: "[Global]\npassword=\"hush\\x\"", fault: `line 2: a backslash in a value is written as \\, in double quotes`},
		"a backslash outside of quotes":         {config: "[Global]\npassword=hush\\x", fault: `line 2: a value with a backslash is written in double quotes`},
		"an unknown key is said with the fault": {config: "[Global]\nauth-url=http://k/v3\nusername=u\npasword=hush\ntenant-id=1", fault: `did you mean "password"?`},
		"empty":                                 {config: "", fault: "neither a Cinder endpoint"},
		"both":                                  {config: "[Global]\ncinder-endpoint=http://a\nauth-url=http://b/v3\nusername=u\npassword=p\ntenant-id=1f", fault: `Cinder endpoint "http://a" does not end in /v3`},
		"a colon":                               {config: "[Global]\ncinder-endpoint=http://a/v3\ntenant-name=a:b", fault: "must not contain a colon"},
		"all at once":                           {config: "[Global]\nauth-url=http://b/v3", fault: "the login names no user"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := credentials.FromConfig("cloud.conf", []byte(tc.config), "", files)
			check(t, got, err, tc.want, tc.fault)
		})
	}
}

// keystoneLogin is the least that a login to keystone needs.
const keystoneLogin = "auth-url=http://k/v3\nusername=u\npassword=p\ntenant-id=1f\n"

// Every key of the cloud provider's own [Global],
// k8s.io/cloud-provider-openstack/pkg/client.AuthOpts, is known. The warnings are of two logins in one file.
func TestFromConfigKnowsEveryKeyOfTheCloudProvider(t *testing.T) {
	got, err := credentials.FromConfig("cloud.conf", []byte(`[Global]
auth-url=http://k/v3
user-id=1
username=2
password=3
tenant-id=4
tenant-name=5
trust-id=6
trustee-id=7
trustee-password=8
domain-id=9
domain-name=10
tenant-domain-id=11
tenant-domain-name=12
user-domain-id=13
user-domain-name=14
region=15
os-endpoint-type=admin
ca-file=
CAFileContents=
tls-insecure=true
token=
cert-file=
key-file=
use-clouds=false
clouds-file=16
cloud=17
application-credential-id=18
application-credential-name=19
application-credential-secret=20
`), "", files)
	check(t, got, err, credentials.Login{
		AuthURL: "http://k/v3", UserID: "7", Password: "8", ProjectID: "4", Project: "5", TrustID: "6", DomainID: "9", DomainName: "10",
		ProjectDomainID: "11", ProjectDomainName: "12", UserDomainID: "13", UserDomainName: "14", Region: "15", EndpointType: "admin",
		Insecure: true, Warnings: []string{
			"cloud config cloud.conf: application-credential-secret (OS_APPLICATION_CREDENTIAL_SECRET)," +
				" application-credential-id (OS_APPLICATION_CREDENTIAL_ID), application-credential-name" +
				" (OS_APPLICATION_CREDENTIAL_NAME) are not used: the login has a password",
			"cloud config cloud.conf: tenant-name (OS_PROJECT_NAME), tenant-id (OS_PROJECT_ID) are not used: a trust has a project of its own",
		},
	}, "")
}

func TestFromConfigReadsWhatTheCloudProviderReads(t *testing.T) {
	login := credentials.Login{AuthURL: "http://k/v3", Username: "u", Password: "p", ProjectID: "1f"}
	with := func(edit func(*credentials.Login)) credentials.Login {
		l := login
		edit(&l)
		return l
	}
	tests := map[string]struct {
		config, which string
		want          credentials.Login
		fault         string
	}{
		"a bare boolean": {
			config: "[Global]\ntls-insecure\n" + keystoneLogin, want: with(func(l *credentials.Login) { l.Insecure = true }),
		},
		"escapes, and a line that is continued": {
			config: "[Global]\n" + keystoneLogin + "password=\"a\\tb\\n\\\"c\\\\\"\nregion=Region\\\nOne\n",
			want:   with(func(l *credentials.Login) { l.Password, l.Region = "a\tb\n\"c\\", "RegionOne" }),
		},
		"lines as Windows ends them, with a byte order mark": {
			config: "\ufeff" + strings.ReplaceAll("[Global]\n"+keystoneLogin, "\n", "\r\n"), want: login,
		},
		"the last of two values":              {config: "[Global]\nregion=R\n" + keystoneLogin + "region=S\n", want: with(func(l *credentials.Login) { l.Region = "S" })},
		"sections of the provider's programs": {config: "[KeyManager]\nkey-id=x\n[Route]\nrouter-id=x\n[Metadata]\nsearch-order=x\n[Networking]\nipv6-support-disabled=true\n[Global]\n" + keystoneLogin, want: login},
		"a trust": {
			config: "[Global]\nauth-url=http://k/v3\nusername=u\npassword=p\ntrust-id=t\n",
			want:   credentials.Login{AuthURL: "http://k/v3", Username: "u", Password: "p", TrustID: "t"},
		},
		"a trust and its trustee": {
			config: "[Global]\nauth-url=http://k/v3\nregion=R\ntrust-id=t\ntrustee-id=7\ntrustee-password=q\n",
			want:   credentials.Login{AuthURL: "http://k/v3", UserID: "7", Password: "q", TrustID: "t", Region: "R"},
		},
		"a token": {
			config: "[Global]\nauth-url=http://k/v3\ntoken=x\n", want: credentials.Login{AuthURL: "http://k/v3", Token: "x"},
		},
		"the only cloud, which has a name": {config: "[Global \"one\"]\n" + keystoneLogin, want: login},
		"one of several clouds": {
			config: "[Global]\nauth-url=http://other/v3\n[Global \"one\"]\n" + keystoneLogin, which: "one", want: login,
		},
		"the cloud without a name": {config: "[Global \"one\"]\nauth-url=http://other/v3\n[Global]\n" + keystoneLogin, want: login},
		"which of them": {
			config: "[Global \"a\"]\n" + keystoneLogin + "[Global \"b\"]\n" + keystoneLogin,
			fault:  `it has no section [Global]; it has [Global "a"], [Global "b"]: name one of them in the property cloud`,
		},
		"none of them": {
			config: "[Global]\n" + keystoneLogin + "[Global \"a\"]\n", which: "b", fault: `it has no section [Global "b"]; it has [Global "a"]`,
		},
		"a name for the clouds.yaml": {
			config: "[Global]\nuse-clouds\nregion=S\n", which: "one",
			want: credentials.Login{
				AuthURL: "http://k/v3", Username: "u", Password: "p", Project: "t", Region: "S", EndpointType: "internal", Insecure: true,
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := credentials.FromConfig("cloud.conf", []byte(tc.config), tc.which, files)
			check(t, got, err, tc.want, tc.fault)
		})
	}
}

// What is not read is said with the word that may have been meant, and the rest of the file is
// read.
func TestFromConfigWarnsOfWhatItDoesNotRead(t *testing.T) {
	tests := map[string]struct{ extra, says string }{
		"a key":                       {"regoin=hush", `cloud config cloud.conf: key "regoin" in [Global] is unknown, and is ignored; did you mean "region"?`},
		"the word of other programs":  {"project-name=hush", `cloud config cloud.conf: key "project-name" in [Global] is unknown, and is ignored; did you mean "tenant-name"?`},
		"a key that is like no other": {"zzzzzz=hush", `cloud config cloud.conf: key "zzzzzz" in [Global] is unknown, and is ignored`},
		"a key without a value":       {"hush", `cloud config cloud.conf: a key without a value in [Global] is unknown, and is ignored`},
		"a key with an empty value":   {"hush=", `cloud config cloud.conf: a key without a value in [Global] is unknown, and is ignored`},
		"the end of Base64":           {"hush==", `cloud config cloud.conf: a key without a value in [Global] is unknown, and is ignored`},
		"a truth without a value":     {"tls-insecur", `cloud config cloud.conf: a key without a value in [Global] is unknown, and is ignored; did you mean "tls-insecure"?`},
		"a section":                   {"[Metdata]\nx=hush\ny=hush", `cloud config cloud.conf: section [Metdata] is unknown, and is ignored; did you mean "metadata"?`},
		"a section with a name":       {"[Other \"n\"]\nx=hush", `cloud config cloud.conf: section [Other] is unknown, and is ignored`},
		"a key of the storage":        {"[BlockStorage]\nbs-verzion=hush", `cloud config cloud.conf: key "bs-verzion" in [BlockStorage] is unknown, and is ignored; did you mean "bs-version"?`},
		"a trustee without a trust":   {"trustee-password=hush", `cloud config cloud.conf: trustee-id and trustee-password are not used without trust-id`},
		"a token beside a password":   {"token=hush", `cloud config cloud.conf: token (OS_TOKEN) is not used: the login has a password`},
		"an application credential beside a password": {
			"application-credential-id=i\napplication-credential-secret=hush", "cloud config cloud.conf: application-credential-secret" +
				" (OS_APPLICATION_CREDENTIAL_SECRET), application-credential-id (OS_APPLICATION_CREDENTIAL_ID) are not used: the login has a password",
		},
		"a distribution's own authorities": {
			"ca-file=/etc/ssl/certs/ca-certificates.crt", "cloud config cloud.conf: file /etc/ssl/certs/ca-certificates.crt is missing," +
				" so the image's own public certificate authorities are used: add the file if it has one of yours",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := credentials.FromConfig("cloud.conf", []byte("[Global]\n"+keystoneLogin+tc.extra), "", files)
			check(t, got, err, credentials.Login{
				AuthURL: "http://k/v3", Username: "u", Password: "p", ProjectID: "1f", Warnings: []string{tc.says},
			}, "")
		})
	}
}

// The parser's own messages may hold a value, ours may not. A line of its own may be the end of
// one, too.
func TestFaultOfACloudConfigShowsNoValue(t *testing.T) {
	for _, text := range []string{
		`password="hush`, `password="hush\x"`, `password=hush\x`, "hush", "a hush", "password hush", "password: hush", "tls-insecure=hush", "use-clouds=hush",
		"password=a\\\nhush=\"", "[Global]hush", "[Global hush]", "password=~\n~hush", "password", "region=x\n\"hush\"", "p\x00hush", "password=\xffhush",
		"password=\nhush", "password=\nhush=", "password=abc\nhush==",
	} {
		_, err := credentials.FromConfig("cloud.conf", []byte("[Global]\n"+text+"\n"), "", files)
		if err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
