package credentials

import (
	"cmp"

	"github.com/gophercloud/gophercloud/v2"
)

// domain is how a domain is named: by its ID, or else by its name.
type domain struct{ id, name string }

// domainOf prefers the ID, which is unique.
func domainOf(id, name string) domain {
	if id != "" {
		return domain{id: id}
	}
	return domain{name: name}
}

// userDomain returns the user's domain. Any form of the user's own counts more than the domain for
// both.
func (l Login) userDomain() domain {
	return cmp.Or(domainOf(l.UserDomainID, l.UserDomainName), domainOf(l.DomainID, l.DomainName))
}

// projectDomain returns the domain of a project that is named, not numbered: its own, that for
// both, or the user's.
func (l Login) projectDomain() domain {
	return cmp.Or(domainOf(l.ProjectDomainID, l.ProjectDomainName), domainOf(l.DomainID, l.DomainName),
		l.userDomain(), l.defaultDomain())
}

func (l Login) defaultDomain() domain {
	return domain{id: cmp.Or(l.DefaultDomain, "default")}
}

// AuthOptions returns the login in gophercloud's form. It identifies a user by its ID alone, or by
// its name and its domain, and without a user by a token.
func (l Login) AuthOptions() gophercloud.AuthOptions {
	options := gophercloud.AuthOptions{
		IdentityEndpoint: l.AuthURL,
		Username:         l.Username,
		UserID:           l.UserID,
		Password:         l.Password.Reveal(),
		// A token that expires in the middle of a run is renewed, unless it was given instead of a
		// login.
		AllowReauth:                 true,
		ApplicationCredentialID:     l.AppCredentialID,
		ApplicationCredentialName:   l.AppCredentialName,
		ApplicationCredentialSecret: l.AppCredentialSecret.Reveal(),
		Scope:                       l.scope(),
	}
	if l.Token != "" {
		options.Username, options.UserID = "", ""
		options.TokenID, options.AllowReauth = l.Token.Reveal(), false
	}
	if options.UserID == "" && options.Username != "" {
		user := cmp.Or(l.userDomain(), l.defaultDomain())
		options.DomainID, options.DomainName = user.id, user.name
	}
	return options
}

// scope returns for which project the token is to be. An application credential, and a token
// without a project beside it, have their own.
func (l Login) scope() *gophercloud.AuthScope {
	switch {
	case l.AppCredentialSecret != "":
		return nil
	case l.TrustID != "":
		return &gophercloud.AuthScope{TrustID: l.TrustID}
	case l.SystemScope != "":
		return &gophercloud.AuthScope{System: true}
	case l.ProjectID != "":
		return &gophercloud.AuthScope{ProjectID: l.ProjectID}
	case l.Project != "":
		of := l.projectDomain()
		return &gophercloud.AuthScope{ProjectName: l.Project, DomainID: of.id, DomainName: of.name}
	default:
		return nil
	}
}

// AssumedDomain returns the user's domain where the login names a user and no domain, or "".
func (l Login) AssumedDomain() string {
	if l.Username == "" || l.userDomain() != (domain{}) {
		return ""
	}
	return l.defaultDomain().id
}
