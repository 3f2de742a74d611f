package credentials

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// FromClouds reads a login from a clouds.yaml. Without a name the file must hold exactly one cloud.
func FromClouds(name string, data []byte, which string, files Files) (Login, error) {
	f, err := readClouds(name, data, which)
	if err != nil {
		return Login{}, err
	}
	return f.login(name, files)
}

// clouds is what a clouds.yaml may hold.
type clouds struct {
	Clouds map[string]cloudEntry `json:"clouds"`
}

type cloudEntry struct {
	Auth      authEntry `json:"auth"`
	AuthType  string    `json:"auth_type"`
	Region    string    `json:"region_name"`
	Interface string    `json:"interface"`
	Endpoint  string    `json:"endpoint_type"`
	CAFile    string    `json:"cacert"`
	CertFile  string    `json:"cert"`
	KeyFile   string    `json:"key"`
	Verify    *bool     `json:"verify"`

	// Settings of other services, which are accepted and not used.
	IdentityVersion any `json:"identity_api_version"`
	VolumeVersion   any `json:"volume_api_version"`
	StorageVersion  any `json:"block_storage_api_version"`
	ComputeVersion  any `json:"compute_api_version"`
	ImageVersion    any `json:"image_api_version"`
	NetworkVersion  any `json:"network_api_version"`
}

type authEntry struct {
	Endpoint            string `json:"endpoint"`
	AuthURL             string `json:"auth_url"`
	Username            string `json:"username"`
	UserID              string `json:"user_id"`
	Password            string `json:"password"`
	ProjectName         string `json:"project_name"`
	ProjectID           string `json:"project_id"`
	TenantName          string `json:"tenant_name"`
	TenantID            string `json:"tenant_id"`
	UserDomainName      string `json:"user_domain_name"`
	UserDomainID        string `json:"user_domain_id"`
	ProjectDomainName   string `json:"project_domain_name"`
	ProjectDomainID     string `json:"project_domain_id"`
	DomainName          string `json:"domain_name"`
	DomainID            string `json:"domain_id"`
	AppCredentialID     string `json:"application_credential_id"`
	AppCredentialName   string `json:"application_credential_name"`
	AppCredentialSecret string `json:"application_credential_secret"`
}

func readClouds(name string, data []byte, which string) (form, error) {
	var all clouds
	if err := yaml.UnmarshalStrict(data, &all); err != nil {
		return form{}, fmt.Errorf("%s: %w", name, keysOnly(err))
	}
	if which == "" && len(all.Clouds) == 1 {
		which = slices.Collect(maps.Keys(all.Clouds))[0]
	}
	entry, ok := all.Clouds[which]
	if !ok {
		return form{}, fmt.Errorf("%s: it holds no cloud %q but %s", name, which,
			strings.Join(slices.Sorted(maps.Keys(all.Clouds)), ", "))
	}
	switch entry.AuthType {
	case "", "none", "noauth", "password", "v3password", "v3applicationcredential":
		return entry.form(), nil
	default:
		return form{}, fmt.Errorf("%s: cloud %s: auth_type %q is not supported; password,"+
			" v3applicationcredential and none are", name, which, entry.AuthType)
	}
}

// keysOnly returns what a decoder's error says about a key, and drops the rest, which could contain a value.
func keysOnly(err error) error {
	_, unknown, ok := strings.Cut(err.Error(), "unknown field ")
	if ok {
		return fmt.Errorf("key %s is unknown", unknown)
	}
	return fmt.Errorf("it is no valid clouds.yaml")
}

func (e cloudEntry) form() form {
	a := e.Auth
	f := form{CAFile: e.CAFile, CertFile: e.CertFile, KeyFile: e.KeyFile}
	f.Login = Login{
		Endpoint: a.Endpoint, AuthURL: a.AuthURL,
		Username: a.Username, UserID: a.UserID, Password: Secret(a.Password),
		Project: cmp.Or(a.ProjectName, a.TenantName), ProjectID: cmp.Or(a.ProjectID, a.TenantID),
		UserDomainName: a.UserDomainName, UserDomainID: a.UserDomainID,
		ProjectDomainName: a.ProjectDomainName, ProjectDomainID: a.ProjectDomainID,
		DomainName: a.DomainName, DomainID: a.DomainID,
		AppCredentialID: a.AppCredentialID, AppCredentialName: a.AppCredentialName,
		AppCredentialSecret: Secret(a.AppCredentialSecret),
		Region:              e.Region, EndpointType: cmp.Or(e.Interface, e.Endpoint),
	}
	if e.Verify != nil {
		f.TLSInsecure = new(!*e.Verify)
	}
	return f
}
