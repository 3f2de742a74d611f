package main

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// env-from-secret may name the proxy behind which Cinder is.
func TestCinderIsReachedThroughTheProxyOfTheEnvironment(t *testing.T) {
	s := fakeStore(t)
	s.binary = build(t)
	cinder, err := url.Parse(s.endpoint)
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		if r.In.URL.Host == "cinder.invalid:8776" {
			asked.Add(1)
		}
		r.Out.URL.Scheme, r.Out.URL.Host = cinder.Scheme, cinder.Host
	}}
	proxy := httptest.NewServer(forward)
	t.Cleanup(proxy.Close)
	r := newRig(t, s, "auto")
	r.login, r.cinder.env = "OS_CINDER_ENDPOINT=http://cinder.invalid:8776/v3", []string{"OS_PROJECT_NAME=admin", "HTTP_PROXY=" + proxy.URL}
	if code := r.run(contract.Provision); code != contract.ExitDone || asked.Load() == 0 {
		t.Errorf("exit code %d after %d requests through the proxy: %s", code, asked.Load(), r.said.String())
	}
}

// The storage's proxy need not reach the API server, so that NO_PROXY need not name it. A kubeconfig
// may name a proxy of its own.
func TestTheAPIServerIsNotAskedThroughTheProxyOfTheEnvironment(t *testing.T) {
	t.Setenv("HTTPS_PROXY", "http://proxy.invalid:3128")
	for _, own := range []string{"", "http://own.invalid:3128"} {
		file := filepath.Join(t.TempDir(), "kubeconfig")
		text := "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{name: x, cluster: {server: 'https://192.0.2.1', proxy-url: '" + own +
			"'}}]\ncontexts: [{name: x, context: {cluster: x, user: x}}]\nusers: [{name: x, user: {}}]\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		config, err := kubeConfig(file)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if proxy, err := config.Proxy(&http.Request{URL: &url.URL{Scheme: "https", Host: "192.0.2.1"}}); err != nil {
			t.Error(err)
		} else if proxy != nil {
			got = proxy.String()
		}
		if got != own {
			t.Errorf("the proxy is %q, want %q", got, own)
		}
	}
}
