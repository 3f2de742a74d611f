package cinder

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"regexp"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/noauth"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/failure"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/place"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/projecturl"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/transport"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// Connect logs in and returns a Cinder. Without keystone it sends no request. It calls wait where
// Cinder asks to be asked again later.
func Connect(ctx context.Context, login credentials.Login, client http.Client, wait volume.Wait) (*Cinder, error) {
	config, err := login.TLS()
	if err != nil {
		return nil, &volume.Error{Kind: volume.Misconfigured, Doing: "prepare TLS", Err: err}
	}
	if config != nil || client.Transport == nil {
		client.Transport = transport.New(config)
	}
	client.CheckRedirect = transport.KeepRedirect
	if login.IsNoauth() {
		return connectNoauth(login, client, wait)
	}
	return connectKeystone(ctx, login, client, wait)
}

// projectInURL matches the projects that every Cinder accepts in a URL. With any other, such as the
// usual "admin", the answers decide whether it is in the URL.
var projectInURL = regexp.MustCompile(`^[0-9a-f-]+$`)

func connectNoauth(login credentials.Login, client http.Client, wait volume.Wait) (*Cinder, error) {
	project := cmp.Or(login.ProjectID, login.Project, "admin")
	provider, err := noauth.NewClient(gophercloud.AuthOptions{
		Username:   cmp.Or(login.Username, "admin"),
		TenantName: project,
	})
	if err != nil {
		return nil, failure.Of(err, "prepare requests to Cinder", nil)
	}
	provider.HTTPClient, provider.RetryFunc = client, retryPolicy(wait)
	return &Cinder{api: apiAt(provider, login.Endpoint, project)}, nil
}

// apiAt returns the API at an endpoint that the login names.
func apiAt(provider *gophercloud.ProviderClient, endpoint, project string) *gophercloud.ServiceClient {
	endpoint = gophercloud.NormalizeURL(endpoint)
	switch {
	case projectInURL.MatchString(project):
		endpoint += project + "/"
	case project != "":
		provider.HTTPClient.Transport = projecturl.New(provider.HTTPClient.Transport, endpoint, project)
	}
	return &gophercloud.ServiceClient{ProviderClient: provider, Endpoint: endpoint, Type: "block-storage"}
}

func connectKeystone(ctx context.Context, login credentials.Login, client http.Client, wait volume.Wait) (*Cinder, error) {
	provider, err := openstack.NewClient(login.AuthURL)
	if err != nil {
		return nil, failure.Of(err, "prepare requests to keystone", nil)
	}
	provider.HTTPClient, provider.RetryFunc = client, retryPolicy(wait)
	options := login.AuthOptions()
	if err := checkLogin(options); err != nil {
		return nil, err
	}
	if err := openstack.AuthenticateV3(ctx, provider, &options, gophercloud.EndpointOpts{}); err != nil {
		return nil, loginFailure(err, login)
	}
	if login.Endpoint != "" {
		return &Cinder{api: apiAt(provider, login.Endpoint, place.Project(provider))}, nil
	}
	endpoint, err := catalogued(provider, login)
	if err != nil {
		return nil, err
	}
	api := &gophercloud.ServiceClient{ProviderClient: provider, Endpoint: endpoint, Type: "block-storage"}
	addVersion(api)
	return &Cinder{api: api}, nil
}

// addVersion adds the version of the API to an endpoint that does not name it, and the project where
// this Cinder wants it.
func addVersion(api *gophercloud.ServiceClient) {
	at, err := url.Parse(api.Endpoint)
	if err != nil || place.VersionIn(at.Path) != "" {
		return
	}
	api.Endpoint += "v3/"
	if project := place.Project(api.ProviderClient); project != "" {
		api.HTTPClient.Transport = projecturl.New(api.HTTPClient.Transport, api.Endpoint, project)
	}
}
