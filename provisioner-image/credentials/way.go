package credentials

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2/openstack/config/clouds"
)

// way is one way to prove who the user is.
type way struct {
	name string
	// types are the names of its plugins in keystoneauth.
	types []clouds.AuthType
	// keys are what only this way uses, as the cloud config spells them. The first is its secret.
	keys []string
	// isWhole reports whether the login has all that the way needs.
	isWhole func(Login) bool
}

// ways in the order in which they are chosen where the login names no type. The password is first,
// as in gophercloud (ToTokenV3CreateMap in auth_options.go) and openstacksdk. A token cannot be
// renewed.
var ways = []way{
	{
		"a password",
		[]clouds.AuthType{clouds.AuthPassword, clouds.AuthV3Password},
		[]string{"password"},
		func(l Login) bool { return l.Password != "" && l.checkUser() == nil && l.hasScope() },
	},
	{
		"an application credential",
		[]clouds.AuthType{clouds.AuthV3ApplicationCredential},
		[]string{"application-credential-secret", "application-credential-id", "application-credential-name"},
		func(l Login) bool { return l.checkAppCredential() == nil },
	},
	{
		"a token",
		[]clouds.AuthType{clouds.AuthToken, clouds.AuthV3Token},
		[]string{"token"},
		func(l Login) bool { return l.Token != "" },
	},
}

// followType keeps the login of the type, or without a type one of the logins, and removes the
// values of all others. Gophercloud sends a password or a token without its project if the ID or
// the name of an application credential is beside it (ToTokenV3ScopeMap in auth_options.go): the
// volumes of such a login were in the project that is the user's default.
func (f *form) followType(origin string) error {
	kind := clouds.AuthType(f.AuthType)
	if kind == "none" || kind == "noauth" {
		f.AuthURL = ""
		f.keep(way{})
		return nil
	}
	if kind == "" {
		f.chooseWay(origin)
		return nil
	}
	i := slices.IndexFunc(ways, func(w way) bool { return slices.Contains(w.types, kind) })
	if i < 0 {
		return fmt.Errorf("%s is not supported (auth_type, OS_AUTH_TYPE): use v3password, v3token, v3applicationcredential or none."+
			" A federated user, such as one of OpenID Connect, can create an application credential", f.shownType())
	}
	f.keep(ways[i])
	if secret := f.setting(ways[i].keys[0]); secret.value.IsZero() {
		return fmt.Errorf("%s needs %s, which is missing", f.shownType(), secret.name())
	}
	return nil
}

// chooseWay keeps the first way that is whole. Where none is, check says what is missing.
func (f *form) chooseWay(origin string) {
	if f.IsNoauth() {
		if unused := f.keep(way{}); f.Endpoint != "" {
			f.warnUnused(origin, unused, "the login names no keystone (auth-url, OS_AUTH_URL)")
		}
		return
	}
	i := slices.IndexFunc(ways, func(w way) bool { return w.isWhole(f.Login) })
	if i >= 0 {
		f.warnUnused(origin, f.keep(ways[i]), "the login has "+ways[i].name)
	}
}

// keep removes what only other ways use, and returns the names of what it has removed.
func (f *form) keep(w way) []string {
	var removed []string
	for _, other := range ways {
		for _, key := range other.keys {
			if s := f.setting(key); !slices.Contains(w.keys, key) && !s.value.IsZero() {
				s.value.SetZero()
				removed = append(removed, s.name())
			}
		}
	}
	return removed
}

// warnScopes warns of what says for which project the login is, and is not used, since scope has
// another.
func (f *form) warnScopes(origin string) {
	project := f.given("tenant-name", "tenant-id")
	system := f.given("OS_SYSTEM_SCOPE")
	switch {
	case f.AppCredentialSecret != "":
		others := slices.Concat(f.given("trust-id"), system, project)
		f.warnUnused(origin, others, "an application credential has a project of its own")
	case f.TrustID != "":
		f.warnUnused(origin, slices.Concat(system, project), "a trust has a project of its own")
	case f.SystemScope != "":
		f.warnUnused(origin, project, "the login has system scope")
		f.Warnings = append(f.Warnings, origin+": a login with system scope has no project, and most releases of Cinder create volumes only in a project")
	}
}

func (f *form) warnUnused(origin string, names []string, since string) {
	if len(names) == 0 {
		return
	}
	are := "is"
	if len(names) > 1 {
		are = "are"
	}
	f.Warnings = append(f.Warnings, fmt.Sprintf("%s: %s %s not used: %s", origin, strings.Join(names, ", "), are, since))
}

// pluginName matches the names of keystoneauth's plugins.
var pluginName = regexp.MustCompile(`^[a-z0-9_]+$`)

// shownType returns how an error shows the type. A block of YAML that is not a name may hold any
// other value of the file.
func (f *form) shownType() string {
	if pluginName.MatchString(f.AuthType) {
		return fmt.Sprintf("auth_type %q", f.AuthType)
	}
	return "this auth_type"
}
