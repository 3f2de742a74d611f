package credentials_test

import (
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
)

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
