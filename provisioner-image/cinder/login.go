package cinder

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// checkLogin returns what keeps gophercloud from making a request of the login, such as a user's name beside a user's ID.
// Another try cannot help.
func checkLogin(options gophercloud.AuthOptions) error {
	scope, err := options.ToTokenV3ScopeMap()
	if err == nil {
		_, err = options.ToTokenV3CreateMap(scope)
	}
	if err == nil {
		return nil
	}
	return &volume.Error{
		Kind:  volume.Denied,
		Doing: loggingIn,
		Said:  "the login contradicts itself or is not complete",
		Err:   err,
	}
}

const loggingIn = "log in to keystone"

// loginFailure converts an error of a login. Another try with the same login cannot help where keystone has answered
// that it does not accept it. By 400 it says that of a request of the wrong form.
func loginFailure(err error, login credentials.Login) error {
	return refused(failure(err, loggingIn, kinds{
		http.StatusBadRequest: volume.Denied,
		http.StatusNotFound:   volume.Misconfigured,
	}), login)
}

// refused adds to keystone's answer what was assumed about the user, since keystone itself never says what was wrong.
func refused(err error, login credentials.Login) error {
	e, ok := errors.AsType[*volume.Error](err)
	if ok && e.Kind == volume.Denied && login.Username != "" && userDomain(login) == (domain{}) {
		e.Said += fmt.Sprintf("; no domain of the user is named (user-domain-name, OS_USER_DOMAIN_NAME), so it is %q",
			defaultDomain(login).id)
	}
	return err
}

// tlsFault returns why TLS does not come about, and what to correct. It returns "" for all other errors.
func tlsFault(err error) string {
	if errors.Is(err, http.ErrSchemeMismatch) {
		return "the server speaks http: name it by http://, or the port where it speaks https"
	}
	if e, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the server's certificate " + certificateFault(e.Err)
	}
	if _, ok := errors.AsType[tls.AlertError](err); ok {
		return "the server refuses TLS: if it asks for a certificate of the client, name one (cert-file and key-file)"
	}
	return ""
}

// certificateFault repeats no name and no address of the error, since users may read it.
func certificateFault(err error) string {
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "is signed by an unknown authority: name the authority's file (ca-file, OS_CACERT, cacert)"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "is for another name than that in the URL"
	}
	if e, ok := errors.AsType[x509.CertificateInvalidError](err); ok && e.Reason == x509.Expired {
		return "has expired or is not valid yet"
	}
	return "is not valid"
}

// domain is how a domain is named: by its ID, or else by its name.
type domain struct{ id, name string }

// domainOf prefers the ID, which is unique.
func domainOf(id, name string) domain {
	if id != "" {
		return domain{id: id}
	}
	return domain{name: name}
}

// userDomain returns the user's domain. Any form of the user's own counts more than the domain for both.
func userDomain(login credentials.Login) domain {
	return cmp.Or(domainOf(login.UserDomainID, login.UserDomainName), domainOf(login.DomainID, login.DomainName))
}

// projectDomain returns the domain of a project that is named, not numbered: its own, that for both, or the user's.
func projectDomain(login credentials.Login) domain {
	return cmp.Or(domainOf(login.ProjectDomainID, login.ProjectDomainName), domainOf(login.DomainID, login.DomainName),
		userDomain(login), defaultDomain(login))
}

func defaultDomain(login credentials.Login) domain {
	return domain{id: cmp.Or(login.DefaultDomain, "default")}
}

// authOptions identifies a user by its ID alone, or by its name and its domain, and without one by a token.
func authOptions(login credentials.Login) gophercloud.AuthOptions {
	options := gophercloud.AuthOptions{
		IdentityEndpoint: login.AuthURL,
		Username:         login.Username,
		UserID:           login.UserID,
		Password:         login.Password.Reveal(),
		// A token that expires in the middle of a run is renewed, unless it was given instead of a login.
		AllowReauth:                 true,
		ApplicationCredentialID:     login.AppCredentialID,
		ApplicationCredentialName:   login.AppCredentialName,
		ApplicationCredentialSecret: login.AppCredentialSecret.Reveal(),
		Scope:                       scope(login),
	}
	if login.Token != "" {
		options.Username, options.UserID = "", ""
		options.TokenID, options.AllowReauth = login.Token.Reveal(), false
	}
	if options.UserID == "" && options.Username != "" {
		user := cmp.Or(userDomain(login), defaultDomain(login))
		options.DomainID, options.DomainName = user.id, user.name
	}
	return options
}

// scope returns for which project the token is to be. An application credential, and a token without a project beside
// it, have their own.
func scope(login credentials.Login) *gophercloud.AuthScope {
	switch {
	case login.AppCredentialSecret != "":
		return nil
	case login.TrustID != "":
		return &gophercloud.AuthScope{TrustID: login.TrustID}
	case login.SystemScope != "":
		return &gophercloud.AuthScope{System: true}
	case login.ProjectID != "":
		return &gophercloud.AuthScope{ProjectID: login.ProjectID}
	case login.Project != "":
		of := projectDomain(login)
		return &gophercloud.AuthScope{ProjectName: login.Project, DomainID: of.id, DomainName: of.name}
	default:
		return nil
	}
}
