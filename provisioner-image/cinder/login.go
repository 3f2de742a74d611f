package cinder

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/failure"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// checkLogin returns what keeps gophercloud from making a request of the login, such as a user's
// name beside a user's ID. Another try cannot help.
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
		Said:  "the login is incomplete, or contradicts itself",
		Err:   err,
	}
}

const loggingIn = "log in to keystone"

// loginFailure converts an error of a login. Another try with the same login cannot help where
// keystone has answered that it does not accept it. By 400 it says that of a request of the wrong
// form.
func loginFailure(err error, login credentials.Login) error {
	return refused(failure.Of(err, loggingIn, failure.Kinds{
		http.StatusBadRequest: volume.Denied,
		http.StatusNotFound:   volume.Misconfigured,
	}), login)
}

// refused adds to keystone's answer what was assumed about the user, since keystone itself never
// says what was wrong.
func refused(err error, login credentials.Login) error {
	e, ok := errors.AsType[*volume.Error](err)
	if ok && e.Kind == volume.Denied && login.AssumedDomain() != "" {
		e.Said += fmt.Sprintf("; the login names no domain of the user (user-domain-name, OS_USER_DOMAIN_NAME), so the domain is %q", login.AssumedDomain())
	}
	return err
}
