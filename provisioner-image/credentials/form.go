package credentials

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"
)

// form is a login as it is written: some values name files, and some name another source. A field's
// tag "gcfg" is its key in the cloud config's [Global] section, as the cloud provider spells it,
// and "env" are its environment variables.
type form struct {
	Login `gcfg:"-"`

	// AuthType is the name of a plugin of keystoneauth, such as v3password.
	AuthType string `gcfg:"-" env:"OS_AUTH_TYPE"`

	CAFile      string `gcfg:"ca-file" env:"OS_CACERT"`
	CertFile    string `gcfg:"cert-file" env:"OS_CERT"`
	KeyFile     string `gcfg:"key-file" env:"OS_KEY"`
	TLSInsecure *bool  `gcfg:"tls-insecure" env:"OS_INSECURE"`

	UseClouds  bool   `gcfg:"use-clouds"`
	CloudsFile string `gcfg:"clouds-file" env:"OS_CLIENT_CONFIG_FILE"`
	Cloud      string `gcfg:"cloud" env:"OS_CLOUD"`

	// The user to whom the trust was given, if it is another than the user.
	TrusteeID       string `gcfg:"trustee-id" env:""`
	TrusteePassword Secret `gcfg:"trustee-password" env:""`
}

// Files reads one of the files that came with the login, by the name or path that it was given
// there.
type Files func(name string) ([]byte, error)

// login resolves the files and the clouds.yaml that the form names, and returns every fault of the
// result at once. The origin says where the form was read.
func (f form) login(origin string, files Files) (Login, error) {
	f.trim(origin)
	if err := f.followClouds(files); err != nil {
		return Login{}, withWarnings(fmt.Errorf("%s: %w", origin, err), f.Warnings)
	}
	if f.TrusteeID+string(f.TrusteePassword) != "" {
		f.followTrustee(origin)
	}
	if err := f.followType(origin); err != nil {
		return Login{}, withWarnings(fmt.Errorf("credentials from %s: %w", origin, err), f.Warnings)
	}
	fault := f.followFiles(origin, files)
	f.normalize(origin)
	if err := errors.Join(fault, f.check()); err != nil {
		return Login{}, withWarnings(fmt.Errorf("credentials from %s: %w", origin, err), f.Warnings)
	}
	return f.Login, nil
}

// followClouds sets from a clouds.yaml what the form does not set itself.
func (f *form) followClouds(files Files) error {
	if !f.UseClouds {
		return nil
	}
	name := cmp.Or(f.CloudsFile, "clouds.yaml")
	data, err := files(name)
	if err != nil {
		return err
	}
	from, err := readClouds(name, data, f.Cloud, f.Region, files)
	if err != nil {
		return err
	}
	from.trim(name)
	set := from.settings()
	for i, mine := range f.settings() {
		if mine.value.IsZero() {
			mine.value.Set(set[i].value)
		}
	}
	f.Warnings = append(f.Warnings, from.Warnings...)
	return nil
}

func (f *form) followFiles(origin string, files Files) error {
	f.Insecure = f.TLSInsecure != nil && *f.TLSInsecure
	ca, caErr := f.readCA(origin, files)
	f.CA = cmp.Or(ca, f.CA)
	var certErr, keyErr error
	f.ClientCert, certErr = content(files, f.CertFile)
	key, keyErr := content(files, f.KeyFile)
	f.ClientKey = Secret(key)
	return errors.Join(caErr, certErr, keyErr)
}

// systemBundles are where distributions keep the public certificate authorities. The image has
// these without a file.
var systemBundles = []string{
	"/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem",
	"/etc/pki/tls/certs/ca-bundle.crt", "/etc/pki/tls/cert.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
}

// readCA reads the file of the certificate authorities. A distribution's own file need not be
// there.
func (f *form) readCA(origin string, files Files) (string, error) {
	ca, err := content(files, f.CAFile)
	if errors.Is(err, fs.ErrNotExist) && slices.Contains(systemBundles, f.CAFile) {
		f.Warnings = append(f.Warnings, fmt.Sprintf("%s: file %s is missing, so the image's own public certificate authorities are used:"+
			" add the file if it has one of yours", origin, f.CAFile))
		return "", nil
	}
	return ca, err
}

func content(files Files, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	data, err := files(name)
	return string(data), err
}

// projectPlaceholder matches the project as it is written in endpoint overrides (_StringFormatter in
// keystoneauth's session.py), and in the catalog's templates that they are copied from.
var projectPlaceholder = regexp.MustCompile(`/[%$]\((project|tenant)_id\)s/?$`)

// normalize accepts the longer names of endpoint types and a keystone URL without a version.
func (f *form) normalize(origin string) {
	f.EndpointType = strings.TrimSuffix(f.EndpointType, "URL")
	f.AuthURL = withVersion(f.AuthURL)
	f.Endpoint = projectPlaceholder.ReplaceAllString(f.Endpoint, "")
	f.warnScopes(origin)
}

// followTrustee replaces the user by the trustee.
func (f *form) followTrustee(origin string) {
	if f.TrustID == "" {
		f.Warnings = append(f.Warnings, origin+": trustee-id and trustee-password are not used without trust-id")
		return
	}
	if f.TrusteeID != "" {
		f.UserID, f.Username = f.TrusteeID, ""
	}
	f.Password = cmp.Or(f.TrusteePassword, f.Password)
}
