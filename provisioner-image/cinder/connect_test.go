package cinder_test

import (
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

func keystone(t *testing.T) (*cindertest.Keystone, *cindertest.Server) {
	t.Helper()
	server := cindertest.New()
	k := cindertest.NewKeystone(server)
	t.Cleanup(func() { k.Close(); server.Close() })
	return k, server
}

// Each form of a login sends its own request to keystone. The user's domain is "default" unless it
// is set.
func TestLoginAsksKeystoneForToken(t *testing.T) {
	tests := map[string]struct {
		login credentials.Login
		asks  []string
	}{
		"password": {
			credentials.Login{Username: "u", Password: "Passw0rd!", Project: "p"},
			[]string{`"domain":{"id":"default"},"name":"u"`, `"scope":{"project":{"domain":{"id":"default"},"name":"p"}}`},
		},
		"password, numbered project": {
			credentials.Login{Username: "u", Password: "Passw0rd!", ProjectID: "1f", UserDomainName: "d"},
			[]string{`"domain":{"name":"d"},"name":"u"`, `"scope":{"project":{"id":"1f"}}`},
		},
		"password, two domains": {
			credentials.Login{Username: "u", Password: "Passw0rd!", Project: "p", UserDomainID: "a", ProjectDomainName: "b"},
			[]string{`"domain":{"id":"a"},"name":"u"`, `"scope":{"project":{"domain":{"name":"b"},"name":"p"}}`},
		},
		"the user's own domain by name, another for both by ID": {
			credentials.Login{Username: "u", Password: "Passw0rd!", Project: "p", UserDomainName: "Users", ProjectDomainName: "Projects", DomainID: "both"},
			[]string{`"domain":{"name":"Users"},"name":"u"`, `"scope":{"project":{"domain":{"name":"Projects"},"name":"p"}}`},
		},
		"one domain for both": {
			credentials.Login{Username: "u", Password: "Passw0rd!", Project: "p", DomainName: "both"},
			[]string{`"domain":{"name":"both"},"name":"u"`, `"scope":{"project":{"domain":{"name":"both"},"name":"p"}}`},
		},
		"numbered user, named project": {
			credentials.Login{UserID: "7", Password: "Passw0rd!", Project: "p", UserDomainID: "a"},
			[]string{`"user":{"id":"7","password"`, `"scope":{"project":{"domain":{"id":"a"},"name":"p"}}`},
		},
		"numbered user, named project, no domain": {
			credentials.Login{UserID: "7", Password: "Passw0rd!", Project: "p"},
			[]string{`"user":{"id":"7","password"`, `"scope":{"project":{"domain":{"id":"default"},"name":"p"}}`},
		},
		"numbered user": {
			credentials.Login{UserID: "7", Password: "Passw0rd!", ProjectID: "1f"}, []string{`"user":{"id":"7","password"`},
		},
		"trust": {
			credentials.Login{UserID: "7", Password: "Passw0rd!", TrustID: "t", Project: "p"},
			[]string{`"user":{"id":"7","password"`, `"scope":{"OS-TRUST:trust":{"id":"t"}}`},
		},
		"whole system": {
			credentials.Login{Username: "u", Password: "Passw0rd!", SystemScope: "all"}, []string{`"scope":{"system":{"all":true}}`},
		},
		"domain of all that have no other": {
			credentials.Login{Username: "u", Password: "Passw0rd!", Project: "p", DefaultDomain: "7"},
			[]string{`"domain":{"id":"7"},"name":"u"`, `"scope":{"project":{"domain":{"id":"7"},"name":"p"}}`},
		},
		"token for another project": {
			credentials.Login{Token: "Passw0rd!", ProjectID: "1f"}, []string{`"token":{"id":"Passw0rd!"}`, `"scope":{"project":{"id":"1f"}}`},
		},
		"application credential": {
			credentials.Login{AppCredentialID: "i", AppCredentialSecret: "Passw0rd!"},
			[]string{`"application_credential":{"id":"i","secret":"Passw0rd!"}`},
		},
		"named application credential": {
			credentials.Login{AppCredentialName: "n", AppCredentialSecret: "Passw0rd!", Username: "u", UserDomainID: "d"},
			[]string{`"name":"n"`, `"user":{"domain":{"id":"d"},"name":"u"}`},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			k, _ := keystone(t)
			tc.login.AuthURL = k.URL + "/v3"
			if _, err := connect(t, tc.login).Find(t.Context(), "x"); err != nil {
				t.Fatal(err)
			}
			for _, want := range tc.asks {
				if asked := k.Asked.Load().(string); !strings.Contains(asked, want) {
					t.Errorf("asked %s, want %s in it", asked, want)
				}
			}
		})
	}
}

// A token that has a project is used as it is: keystone is asked only for the catalog.
func TestTokenOfAProjectIsUsedAsItIs(t *testing.T) {
	server := cindertest.New()
	t.Cleanup(server.Close)
	k := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.Header.Get("X-Subject-Token") != "hush" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprintf(w, `{"token": {"expires_at": "2099-01-01T00:00:00.000000Z", "catalog": [{"type": "volumev3", "endpoints": [
			{"interface": "public", "url": "%s/%s"}]}]}}`, server.Endpoint(), cindertest.Project)
	}))
	t.Cleanup(k.Close)
	login := credentials.Login{AuthURL: k.URL + "/v3", Token: "hush"}
	if _, err := cinder.Connect(t.Context(), login, http.Client{}, wait); err != nil {
		t.Fatal(err)
	}
	login.Token = "hush, expired"
	if _, err := cinder.Connect(t.Context(), login, http.Client{}, wait); !volume.Is(err, volume.Denied) || strings.Contains(err.Error(), "hush") {
		t.Errorf("got %v", err)
	}
}

// A token that expires in the middle of a run is renewed.
func TestExpiredTokenIsRenewedOnce(t *testing.T) {
	k, server := keystone(t)
	server.Gate = func(r *http.Request) cindertest.Fate {
		if strings.HasPrefix(r.Header.Get("X-Auth-Token"), "token-1:") && r.Method != http.MethodGet {
			return cindertest.Refuse
		}
		return cindertest.Answer
	}
	c := connect(t, credentials.Login{AuthURL: k.URL + "/v3", Username: "u", Password: "Passw0rd!", Project: "p"})
	s := spec(t, c)
	if _, _, err := keep(c).Ensure(t.Context(), s); err != nil || k.Tokens.Load() != 2 {
		t.Errorf("%v, %d tokens", err, k.Tokens.Load())
	}
}

// The error never shows the password.
func TestRefusedLoginSaysWhatToCorrect(t *testing.T) {
	good := func(k *cindertest.Keystone) credentials.Login {
		return credentials.Login{AuthURL: k.URL + "/v3", Username: "u", Password: "Passw0rd!", Project: "p"}
	}
	tests := map[string]struct {
		edit func(*credentials.Login, *cindertest.Server)
		kind volume.Kind
		said string
	}{
		"wrong password": {func(l *credentials.Login, _ *cindertest.Server) { l.Password = "hush" }, volume.Denied, "log in to keystone: The request you have made requires"},
		"no keystone":    {func(l *credentials.Login, s *cindertest.Server) { l.AuthURL = s.Endpoint() }, volume.Misconfigured, "log in to keystone"},
		"user's name and ID": {
			func(l *credentials.Login, _ *cindertest.Server) { l.UserID = "7" }, volume.Denied, "log in to keystone: the login is incomplete, or contradicts itself",
		},
		"wrong password of a user without a domain": {
			func(l *credentials.Login, _ *cindertest.Server) { l.Password = "hush" }, volume.Denied,
			`the login names no domain of the user (user-domain-name, OS_USER_DOMAIN_NAME), so the domain is "default"`,
		},
		"http instead of https": {
			func(l *credentials.Login, _ *cindertest.Server) {
				l.AuthURL = strings.Replace(l.AuthURL, "http:", "https:", 1)
			}, volume.Denied, "the server uses http",
		},
		"wrong region": {func(l *credentials.Login, _ *cindertest.Server) { l.Region = "Mars" }, volume.Misconfigured, `no block-storage endpoint for region "Mars"`},
		"wrong type":   {func(l *credentials.Login, _ *cindertest.Server) { l.EndpointType = "internal" }, volume.Misconfigured, `endpoint type "internal"`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			k, server := keystone(t)
			login := good(k)
			tc.edit(&login, server)
			_, err := cinder.Connect(t.Context(), login, http.Client{}, wait)
			if !volume.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.said) || strings.Contains(err.Error(), "hush") {
				t.Errorf("got %v, want %q", err, tc.said)
			}
		})
	}
}

// A certificate that is not accepted stays so until an administrator corrects the login.
func TestCertificateThatIsNotAcceptedIsNoOutage(t *testing.T) {
	front := httptest.NewUnstartedServer(http.NotFoundHandler())
	front.Config.ErrorLog = log.New(io.Discard, "", 0)
	front.StartTLS()
	t.Cleanup(front.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}))
	theirs := credentials.Login{AuthURL: front.URL + "/v3", Username: "u", Password: "hush", Project: "p"}
	noauth := credentials.Login{Endpoint: front.URL + "/v3", Project: "admin"}
	k, _ := keystone(t)
	k.CatalogURL, k.Type = front.URL+"/volume", "block-storage"
	behind := credentials.Login{AuthURL: k.URL + "/v3", Username: "u", Password: "Passw0rd!", Project: "p"}
	otherName := theirs
	otherName.CA, otherName.AuthURL = ca, strings.Replace(theirs.AuthURL, "127.0.0.1", "localhost", 1)
	for name, tc := range map[string]struct {
		login credentials.Login
		said  string
	}{
		"keystone, unknown authority":    {theirs, "signed by an unknown authority: name the authority's file (ca-file"},
		"no keystone, unknown authority": {noauth, "signed by an unknown authority: name the authority's file (ca-file"},
		"the Cinder of the catalog":      {behind, "signed by an unknown authority: name the authority's file (ca-file"},
		"another name":                   {otherName, "is not for the host name in the URL"},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := cinder.Connect(t.Context(), tc.login, http.Client{}, wait)
			if err == nil {
				_, err = c.Find(t.Context(), "x")
			}
			if !volume.Is(err, volume.Denied) || !strings.Contains(err.Error(), tc.said) || strings.Contains(err.Error(), "hush") {
				t.Errorf("got %v, want %q", err, tc.said)
			}
		})
	}
}

// A Cinder that is down when a run begins is no fault of the catalog, whatever the catalog's form.
// gophercloud asks an address without a version for its versions, and its error once read as "keystone
// lists no block-storage endpoint", with another try after 10 minutes.
func TestCinderThatIsDownAtTheLoginIsNoFaultOfTheCatalog(t *testing.T) {
	for _, at := range []string{"/volume", "/volume/v3/" + cindertest.Project} {
		for name, answer := range map[string]http.HandlerFunc{
			"500":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) },
			"503":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
			"429":       func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
			"no answer": func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		} {
			k, _ := keystone(t)
			front := httptest.NewServer(answer)
			t.Cleanup(front.Close)
			k.CatalogURL, k.Type = front.URL+at, "block-storage"
			c := connect(t, credentials.Login{AuthURL: k.URL + "/v3", Username: "u", Password: "Passw0rd!", Project: "p"})
			if _, err := c.Find(t.Context(), "x"); !volume.Is(err, volume.Unavailable) || strings.Contains(err.Error(), "catalog") {
				t.Errorf("%s at %s: %v", name, at, err)
			}
		}
	}
}

// Keystone answers so to a request of the wrong form, and will do so again.
func TestLoginOfTheWrongFormIsNoOutage(t *testing.T) {
	k := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"error": {"code": 400, "message": "Expecting to find domain in project."}}`)
	}))
	t.Cleanup(k.Close)
	login := credentials.Login{AuthURL: k.URL + "/v3", UserID: "7", Password: "hush", Project: "p"}
	_, err := cinder.Connect(t.Context(), login, http.Client{}, wait)
	if !volume.Is(err, volume.Denied) || !strings.Contains(err.Error(), "Expecting to find domain in project.") {
		t.Errorf("got %v", err)
	}
}

// A keystone that is overloaded or broken is an outage, too.
func TestKeystoneThatIsBrokenIsAnOutage(t *testing.T) {
	for _, status := range []int{429, 500, 502, 503, 504} {
		k := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		t.Cleanup(k.Close)
		login := credentials.Login{AuthURL: k.URL + "/v3", Username: "u", Password: "hush", Project: "p"}
		_, err := cinder.Connect(t.Context(), login, http.Client{}, wait)
		if !volume.Is(err, volume.Unavailable) || !strings.Contains(err.Error(), "log in to keystone: HTTP "+strconv.Itoa(status)) {
			t.Errorf("%d: %v", status, err)
		}
	}
}

// Only what does not answer is an outage.
func TestKeystoneThatDoesNotAnswerIsAnOutage(t *testing.T) {
	k, _ := keystone(t)
	login := credentials.Login{AuthURL: k.URL + "/v3", Username: "u", Password: "hush", Project: "p"}
	k.Close()
	_, err := cinder.Connect(t.Context(), login, http.Client{}, wait)
	if !volume.Is(err, volume.Unavailable) || strings.Contains(err.Error(), "hush") {
		t.Errorf("got %v", err)
	}
}

// Only the CA of the login is trusted, unless the login is insecure.
func TestTLSTrustsTheCAOfTheLogin(t *testing.T) {
	server := cindertest.New()
	t.Cleanup(server.Close)
	behind, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewTLSServer(httputil.NewSingleHostReverseProxy(behind))
	t.Cleanup(front.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: front.Certificate().Raw}))
	for name, tc := range map[string]struct {
		login credentials.Login
		works bool
	}{
		"unknown authority": {credentials.Login{}, false},
		"its authority":     {credentials.Login{CA: ca}, true},
		"believes all":      {credentials.Login{Insecure: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			tc.login.Endpoint, tc.login.Project = front.URL+"/v3", "admin"
			_, err := connect(t, tc.login).Find(t.Context(), "x")
			if (err == nil) != tc.works {
				t.Error(err)
			}
		})
	}
}
