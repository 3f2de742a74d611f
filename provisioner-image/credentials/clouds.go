package credentials

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
	"go.yaml.in/yaml/v3"
)

// FromClouds reads a login from a clouds.yaml and the secure.yaml and clouds-public.yaml beside it.
// Without a name of a cloud the file must hold exactly one.
func FromClouds(name string, data []byte, which string, files Files) (Login, error) {
	f, err := readClouds(name, data, which, "", files)
	if err != nil {
		return Login{}, err
	}
	return f.login(name, files)
}

// readClouds reads one cloud, in the region that is named or else the cloud's own. The format is
// that of gophercloud's types. Its function Parse is not used, because it reads the process's
// environment and opens the files that they name.
func readClouds(name string, data []byte, which, region string, files Files) (form, error) {
	entries, warnings, err := parseClouds(name, data)
	if err != nil {
		return form{}, err
	}
	if which == "" && len(entries) == 1 {
		which = slices.Collect(maps.Keys(entries))[0]
	}
	own, ok := entries[which]
	if !ok {
		return form{}, fmt.Errorf("%s: it has no cloud %q; it has %s", name, which, strings.Join(slices.Sorted(maps.Keys(entries)), ", "))
	}
	s := stack{name: name, cloud: which, warnings: warnings, files: files}
	if err := s.load(&own, region); err != nil {
		return form{}, withWarnings(fmt.Errorf("%s: cloud %s: %w", name, which, err), s.warnings)
	}
	return s.form(), nil
}

// stack merges what several files say of one cloud.
type stack struct {
	name, cloud string
	files       Files
	cloudEntry
	warnings []string
}

// cloudEntry is a cloud in gophercloud's form, with the keys that only other programs know.
type cloudEntry struct {
	clouds.Cloud
	extra extraKeys
}

type extraKeys struct {
	Auth    extraAuth   `yaml:"auth"`
	Regions []yaml.Node `yaml:"regions"`
	// The endpoint of Cinder, by its names in openstacksdk (get_endpoint in its
	// config/cloud_region.py).
	BlockStorageEndpoint string `yaml:"block_storage_endpoint_override"`
	VolumeEndpoint       string `yaml:"volume_endpoint_override"`
	VolumeV3Endpoint     string `yaml:"volumev3_endpoint_override"`
}

type extraAuth struct {
	Endpoint   string `yaml:"endpoint"`
	TenantName string `yaml:"tenant_name"`
	TenantID   string `yaml:"tenant_id"`
}

// load merges from what counts least to what counts most: the vendor's profile, the cloud, its
// region, its secrets.
func (s *stack) load(own *yaml.Node, region string) error {
	secure, err := s.beside("secure.yaml", s.cloud)
	if err != nil {
		return err
	}
	if err := s.merge(own, secure); err != nil {
		return err
	}
	profile, err := s.vendor()
	if err != nil {
		return err
	}
	if err := s.merge(profile, own, secure); err != nil {
		return err
	}
	values, err := s.region(region)
	if err != nil {
		return err
	}
	s.warn(s.name, own)
	s.warn("secure.yaml", secure)
	return s.merge(values, secure)
}

// merge sets what the nodes name. A later one counts more.
func (s *stack) merge(nodes ...*yaml.Node) error {
	for _, n := range nodes {
		if n == nil {
			continue
		}
		tolerate(n)
		if err := errors.Join(n.Decode(&s.Cloud), n.Decode(&s.extra)); err != nil {
			return yamlFault(err)
		}
	}
	return nil
}

// beside returns the entry of a file that lies beside the clouds.yaml, nil if there is none.
func (s *stack) beside(file, entry string) (*yaml.Node, error) {
	data, err := s.files(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	entries, warnings, err := parseClouds(file, data)
	s.warnings = append(s.warnings, warnings...)
	if n, ok := entries[entry]; ok && err == nil {
		return &n, nil
	}
	return nil, err
}

// vendor returns the profile that the cloud names, which used to be called cloud.
func (s *stack) vendor() (*yaml.Node, error) {
	profile := cmp.Or(s.Profile, s.Cloud.Cloud)
	if profile == "" {
		return nil, nil
	}
	n, err := s.beside("clouds-public.yaml", profile)
	if n == nil && err == nil {
		s.warnings = append(s.warnings, fmt.Sprintf("%s: the profile of cloud %s is not used: no clouds-public.yaml beside the file contains it",
			s.name, s.cloud))
	}
	return n, err
}

// region sets the region, by default the first of the cloud's list, and returns what the list says
// of it.
func (s *stack) region(name string) (*yaml.Node, error) {
	listed := s.extra.Regions
	s.RegionName = cmp.Or(name, s.RegionName)
	for i := range listed {
		var r struct {
			Name   string
			Values yaml.Node
		}
		if listed[i].Kind == yaml.ScalarNode {
			r.Name = listed[i].Value
		} else if err := listed[i].Decode(&r); err != nil {
			return nil, yamlFault(err)
		}
		if s.RegionName = cmp.Or(s.RegionName, r.Name); s.RegionName == r.Name && r.Values.Kind != 0 {
			return &r.Values, nil
		}
	}
	return nil, nil
}

func (s *stack) form() form {
	a := s.AuthInfo
	if a == nil {
		a = &clouds.AuthInfo{}
	}
	f := form{AuthType: string(s.AuthType), CAFile: s.CACertFile, CertFile: s.ClientCertFile, KeyFile: s.ClientKeyFile}
	if s.Verify != nil {
		f.TLSInsecure = new(!*s.Verify)
	}
	f.Login = Login{
		Endpoint: cmp.Or(s.extra.Auth.Endpoint, s.extra.BlockStorageEndpoint, s.extra.VolumeV3Endpoint, s.extra.VolumeEndpoint), AuthURL: a.AuthURL,
		Username: a.Username, UserID: a.UserID, Password: Secret(a.Password), Token: Secret(a.Token),
		Project: cmp.Or(a.ProjectName, s.extra.Auth.TenantName), ProjectID: cmp.Or(a.ProjectID, s.extra.Auth.TenantID),
		UserDomainName: a.UserDomainName, UserDomainID: a.UserDomainID,
		ProjectDomainName: a.ProjectDomainName, ProjectDomainID: a.ProjectDomainID,
		DomainName: a.DomainName, DomainID: a.DomainID, DefaultDomain: a.DefaultDomain,
		AppCredentialID: a.ApplicationCredentialID, AppCredentialName: a.ApplicationCredentialName,
		AppCredentialSecret: Secret(a.ApplicationCredentialSecret),
		TrustID:             a.TrustID, SystemScope: a.SystemScope,
		Region: s.RegionName, EndpointType: cmp.Or(s.EndpointType, s.Interface),
	}
	f.Warnings = s.warnings
	return f
}
