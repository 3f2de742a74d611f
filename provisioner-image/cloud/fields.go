package cloud

// field is one value of a Login under its names: the keys of the cloud config's [Global] section, as
// the OpenStack cloud provider spells them, and the environment variables, the usual one first.
type field struct {
	keys []string
	vars []string
	at   func(*Login) *string
}

// fields is the one list of what both forms understand.
func fields() []field {
	return []field{
		{names("cinder-endpoint"), names("OS_CINDER_ENDPOINT"), func(l *Login) *string { return &l.Endpoint }},
		{names("auth-url"), names("OS_AUTH_URL"), func(l *Login) *string { return &l.AuthURL }},
		{names("username"), names("OS_USERNAME"), func(l *Login) *string { return &l.Username }},
		{names("user-id"), names("OS_USER_ID", "OS_USERID"), func(l *Login) *string { return &l.UserID }},
		{names("password"), names("OS_PASSWORD"), func(l *Login) *string { return (*string)(&l.Password) }},
		{names("tenant-name"), names("OS_PROJECT_NAME", "OS_TENANT_NAME"), func(l *Login) *string { return &l.Project }},
		{names("tenant-id"), names("OS_PROJECT_ID", "OS_TENANT_ID"), func(l *Login) *string { return &l.ProjectID }},
		{names("user-domain-name"), names("OS_USER_DOMAIN_NAME"), func(l *Login) *string { return &l.UserDomainName }},
		{names("user-domain-id"), names("OS_USER_DOMAIN_ID"), func(l *Login) *string { return &l.UserDomainID }},
		{names("tenant-domain-name"), names("OS_PROJECT_DOMAIN_NAME"), func(l *Login) *string { return &l.ProjectDomainName }},
		{names("tenant-domain-id"), names("OS_PROJECT_DOMAIN_ID"), func(l *Login) *string { return &l.ProjectDomainID }},
		{names("domain-name"), names("OS_DOMAIN_NAME"), func(l *Login) *string { return &l.DomainName }},
		{names("domain-id"), names("OS_DOMAIN_ID"), func(l *Login) *string { return &l.DomainID }},
		{
			names("application-credential-id"), names("OS_APPLICATION_CREDENTIAL_ID"),
			func(l *Login) *string { return &l.AppCredentialID },
		},
		{
			names("application-credential-name"), names("OS_APPLICATION_CREDENTIAL_NAME"),
			func(l *Login) *string { return &l.AppCredentialName },
		},
		{
			names("application-credential-secret"), names("OS_APPLICATION_CREDENTIAL_SECRET"),
			func(l *Login) *string { return (*string)(&l.AppCredentialSecret) },
		},
		{names("region"), names("OS_REGION_NAME"), func(l *Login) *string { return &l.Region }},
		{names("os-endpoint-type"), names("OS_INTERFACE", "OS_ENDPOINT_TYPE"), func(l *Login) *string { return &l.EndpointType }},
	}
}

func names(n ...string) []string { return n }
