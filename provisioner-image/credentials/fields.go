package credentials

// form is a login as it is written: some values name files, and some name another source.
type form struct {
	Login

	caFile, certFile, keyFile    string
	insecure                     string
	useClouds, cloudsFile, cloud string
}

// field is one value of a form under its names: the keys of the cloud config's [Global] section, as the
// OpenStack cloud provider spells them, and the environment variables, the usual one first.
type field struct {
	key  string
	vars []string
	at   func(*form) *string
}

// fields returns the one list of what both forms understand.
func fields() []field {
	return []field{
		{"cinder-endpoint", names("OS_CINDER_ENDPOINT"), func(f *form) *string { return &f.Endpoint }},
		{"auth-url", names("OS_AUTH_URL"), func(f *form) *string { return &f.AuthURL }},
		{"username", names("OS_USERNAME"), func(f *form) *string { return &f.Username }},
		{"user-id", names("OS_USER_ID", "OS_USERID"), func(f *form) *string { return &f.UserID }},
		{"password", names("OS_PASSWORD"), func(f *form) *string { return (*string)(&f.Password) }},
		{"tenant-name", names("OS_PROJECT_NAME", "OS_TENANT_NAME"), func(f *form) *string { return &f.Project }},
		{"tenant-id", names("OS_PROJECT_ID", "OS_TENANT_ID"), func(f *form) *string { return &f.ProjectID }},
		{"user-domain-name", names("OS_USER_DOMAIN_NAME"), func(f *form) *string { return &f.UserDomainName }},
		{"user-domain-id", names("OS_USER_DOMAIN_ID"), func(f *form) *string { return &f.UserDomainID }},
		{"tenant-domain-name", names("OS_PROJECT_DOMAIN_NAME"), func(f *form) *string { return &f.ProjectDomainName }},
		{"tenant-domain-id", names("OS_PROJECT_DOMAIN_ID"), func(f *form) *string { return &f.ProjectDomainID }},
		{"domain-name", names("OS_DOMAIN_NAME"), func(f *form) *string { return &f.DomainName }},
		{"domain-id", names("OS_DOMAIN_ID"), func(f *form) *string { return &f.DomainID }},
		{
			"application-credential-id", names("OS_APPLICATION_CREDENTIAL_ID"),
			func(f *form) *string { return &f.AppCredentialID },
		},
		{
			"application-credential-name", names("OS_APPLICATION_CREDENTIAL_NAME"),
			func(f *form) *string { return &f.AppCredentialName },
		},
		{
			"application-credential-secret", names("OS_APPLICATION_CREDENTIAL_SECRET"),
			func(f *form) *string { return (*string)(&f.AppCredentialSecret) },
		},
		{"region", names("OS_REGION_NAME"), func(f *form) *string { return &f.Region }},
		{"os-endpoint-type", names("OS_INTERFACE", "OS_ENDPOINT_TYPE"), func(f *form) *string { return &f.EndpointType }},
		{"ca-file", names("OS_CACERT"), func(f *form) *string { return &f.caFile }},
		{"cert-file", names("OS_CERT"), func(f *form) *string { return &f.certFile }},
		{"key-file", names("OS_KEY"), func(f *form) *string { return &f.keyFile }},
		{"tls-insecure", names("OS_INSECURE"), func(f *form) *string { return &f.insecure }},
		{"use-clouds", nil, func(f *form) *string { return &f.useClouds }},
		{"clouds-file", names("OS_CLIENT_CONFIG_FILE"), func(f *form) *string { return &f.cloudsFile }},
		{"cloud", names("OS_CLOUD"), func(f *form) *string { return &f.cloud }},
	}
}

func names(n ...string) []string { return n }
