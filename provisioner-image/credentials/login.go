package credentials

import (
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Login is the address of a Cinder and how to log in to it. With AuthURL keystone checks the
// identity, and its catalog has Cinder's address if Endpoint is empty. Without it Endpoint is set,
// and Cinder checks no identity.
type Login struct {
	// Endpoint is Cinder's address without a project, such as http://192.0.2.1:8776/v3.
	Endpoint string `gcfg:"cinder-endpoint" env:"OS_CINDER_ENDPOINT,OS_BLOCK_STORAGE_ENDPOINT_OVERRIDE,OS_VOLUMEV3_ENDPOINT_OVERRIDE,OS_VOLUME_ENDPOINT_OVERRIDE"`
	// AuthURL of keystone, such as https://192.0.2.1:5000/v3.
	AuthURL string `gcfg:"auth-url" env:"OS_AUTH_URL"`

	Username          string `gcfg:"username" env:"OS_USERNAME"`
	UserID            string `gcfg:"user-id" env:"OS_USER_ID,OS_USERID"`
	Password          Secret `gcfg:"password" env:"OS_PASSWORD"`
	UserDomainName    string `gcfg:"user-domain-name" env:"OS_USER_DOMAIN_NAME"`
	UserDomainID      string `gcfg:"user-domain-id" env:"OS_USER_DOMAIN_ID"`
	Project           string `gcfg:"tenant-name" env:"OS_PROJECT_NAME,OS_TENANT_NAME"`
	ProjectID         string `gcfg:"tenant-id" env:"OS_PROJECT_ID,OS_TENANT_ID"`
	ProjectDomainName string `gcfg:"tenant-domain-name" env:"OS_PROJECT_DOMAIN_NAME"`
	ProjectDomainID   string `gcfg:"tenant-domain-id" env:"OS_PROJECT_DOMAIN_ID"`
	DomainName        string `gcfg:"domain-name" env:"OS_DOMAIN_NAME"`
	DomainID          string `gcfg:"domain-id" env:"OS_DOMAIN_ID"`
	// DefaultDomain is the ID of the domain of users and projects that have no other; without it,
	// "default".
	DefaultDomain       string `gcfg:"-" env:"OS_DEFAULT_DOMAIN_ID,OS_DEFAULT_DOMAIN"`
	AppCredentialID     string `gcfg:"application-credential-id" env:"OS_APPLICATION_CREDENTIAL_ID"`
	AppCredentialName   string `gcfg:"application-credential-name" env:"OS_APPLICATION_CREDENTIAL_NAME"`
	AppCredentialSecret Secret `gcfg:"application-credential-secret" env:"OS_APPLICATION_CREDENTIAL_SECRET"`
	// Token was issued before. It cannot be renewed.
	Token Secret `gcfg:"token" env:"OS_TOKEN"`
	// TrustID is that of a trust, which has a project of its own.
	TrustID string `gcfg:"trust-id" env:"OS_TRUST_ID"`
	// SystemScope is "all" for a login to the whole system instead of a project.
	SystemScope string `gcfg:"-" env:"OS_SYSTEM_SCOPE"`
	Region      string `gcfg:"region" env:"OS_REGION_NAME"`
	// EndpointType chooses among keystone's endpoints: public, internal or admin.
	EndpointType string `gcfg:"os-endpoint-type" env:"OS_INTERFACE,OS_ENDPOINT_TYPE"`

	// CA replaces the system's certificate authorities, in PEM.
	CA string `gcfg:"cafilecontents" env:""`
	// ClientCert and ClientKey authenticate the client by TLS, in PEM.
	ClientCert string `gcfg:"-"`
	ClientKey  Secret `gcfg:"-"`
	// Insecure accepts any certificate of the server.
	Insecure bool `gcfg:"-"`

	// Warnings say what was written and is not used, each in one line without a value.
	Warnings []string `gcfg:"-"`
}

// IsNoauth reports whether Cinder is used without keystone.
func (l Login) IsNoauth() bool { return l.AuthURL == "" }

// check returns every fault of the login at once.
func (l Login) check() error {
	var faults []error
	switch {
	case l.Endpoint == "" && l.AuthURL == "":
		faults = append(faults, errors.New("the login names neither a Cinder endpoint (cinder-endpoint, OS_CINDER_ENDPOINT)"+
			" nor a keystone (auth-url, OS_AUTH_URL)"))
	case l.IsNoauth():
		faults = append(faults, l.checkNoauth())
	default:
		faults = append(faults, l.checkKeystone())
	}
	_, err := l.TLS()
	return errors.Join(append(faults, err)...)
}

func (l Login) checkNoauth() error {
	if strings.Contains(l.Username+l.Project+l.ProjectID, ":") {
		return errors.New("user and tenant of a Cinder without keystone must not contain a colon")
	}
	return l.checkEndpoint()
}

func (l Login) checkEndpoint() error { return checkVersion("Cinder endpoint", l.Endpoint, ofProject) }

func (l Login) checkKeystone() error {
	var faults []error
	faults = append(faults, checkVersion("keystone URL", l.AuthURL, ofRequest))
	if l.Endpoint != "" {
		faults = append(faults, l.checkEndpoint())
	}
	switch l.EndpointType {
	case "", "public", "internal", "admin":
	default:
		faults = append(faults, errors.New("the endpoint type must be public, internal or admin"))
	}
	return errors.Join(append(faults, l.checkWho(), l.checkProject())...)
}

// checkWho checks that there is a way to identify the user: an application credential, a password
// or a token.
func (l Login) checkWho() error {
	switch {
	case l.AppCredentialSecret != "" || l.Password == "" && l.AppCredentialID+l.AppCredentialName != "":
		return l.checkAppCredential()
	case l.Password == "" && l.Token != "":
		return nil
	case l.Password == "":
		return errors.Join(l.checkUser(), errors.New("the login has no password (password, OS_PASSWORD)"))
	default:
		return l.checkUser()
	}
}

func (l Login) checkUser() error {
	if l.Username == "" && l.UserID == "" {
		return errors.New("the login names no user (username, OS_USERNAME)")
	}
	return nil
}

// checkProject accepts what needs no project or has its own: a trust, an application credential, a
// token.
func (l Login) checkProject() error {
	if l.SystemScope != "" && l.SystemScope != "all" {
		return errors.New("the system scope must be all (system_scope, OS_SYSTEM_SCOPE)")
	}
	if l.hasScope() || l.AppCredentialSecret+l.Token != "" {
		return nil
	}
	return errors.New("the login names no project (tenant-name, OS_PROJECT_NAME)")
}

func (l Login) hasScope() bool { return l.Project+l.ProjectID+l.TrustID+l.SystemScope != "" }

// checkAppCredential checks that the credential can be identified: by its ID, or by its name and
// its user.
func (l Login) checkAppCredential() error {
	if l.AppCredentialSecret == "" {
		return errors.New("the application credential has no secret" +
			" (application-credential-secret, OS_APPLICATION_CREDENTIAL_SECRET)")
	}
	if l.AppCredentialID == "" && l.AppCredentialName == "" {
		return errors.New("the application credential has a secret, but neither an ID nor a name")
	}
	if l.AppCredentialID == "" && l.Username == "" && l.UserID == "" {
		return errors.New("an application credential without an ID needs the name of its user")
	}
	return nil
}

// versionForm matches the segment of a path that names the version of an API.
var versionForm = regexp.MustCompile(`^v[0-9]+(\.[0-9]+)?$`)

// withVersion completes a keystone URL that names no version, as many clients' files have it.
func withVersion(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return raw
	}
	if _, version, _ := splitVersion(u.Path); version != "" {
		return raw
	}
	u.Path = path.Join("/", u.Path, "v3")
	return u.String()
}

// checkVersion accepts an http or https URL that ends in /v3. The version that no longer exists has
// a message of its own, since every old example names it. No message shows a password that is in
// the URL. Hint returns what to do with what follows the version.
func checkVersion(what, raw string, hint func(rest string) string) error {
	u, err := url.Parse(raw)
	if err != nil || !isHTTP(u) {
		return fmt.Errorf("%s must be an http or https URL: write http://HOST:PORT/v3, without quotes", what)
	}
	if u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return fmt.Errorf("%s must end in /v3, without a query or a fragment: PersistentVolumes show it", what)
	}
	written := u.Redacted()
	base, version, rest := splitVersion(u.Path)
	u.Path = path.Join("/", base, "v3")
	switch {
	case isRetired(version):
		return fmt.Errorf("%s %q names the API %s, which no longer exists: write %q%s", what, written, version, u.Redacted(), hint(rest))
	case version != "v3" || rest != "":
		return fmt.Errorf("%s %q does not end in /v3: write %q%s", what, written, u.Redacted(), hint(rest))
	default:
		return nil
	}
}

func isHTTP(u *url.URL) bool {
	return u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}

func isRetired(version string) bool {
	return strings.HasPrefix(version, "v1") || strings.HasPrefix(version, "v2")
}

// splitVersion splits a path at its last segment that is a version. After it a catalog's URL has a
// project, and a URL that was copied from a log has the path of a request.
func splitVersion(whole string) (base, version, rest string) {
	parts := strings.Split(strings.TrimRight(whole, "/"), "/")
	for i, part := range slices.Backward(parts) {
		if versionForm.MatchString(part) {
			return strings.Join(parts[:i], "/"), part, strings.Join(parts[i+1:], "/")
		}
	}
	return strings.Join(parts, "/"), "", ""
}

func ofProject(rest string) string {
	if rest == "" {
		return ""
	}
	return fmt.Sprintf(", and name the project by tenant-id or tenant-name, not by %q in the URL", rest)
}

func ofRequest(rest string) string {
	if rest == "" {
		return ""
	}
	return fmt.Sprintf(", without %q", rest)
}
