package transport

import (
	"crypto/tls"
	"net/http"
)

// mostIdle is how many connections to one server are kept for the next request: a batch has no more claims, and each sends one request at a time.
// By default it would be two, and the requests of a batch would need new ones all the time.
const mostIdle = 64

// New returns a transport. The config may be nil.
func New(config *tls.Config) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone() // the standard library's own
	t.MaxIdleConnsPerHost = mostIdle
	if config != nil {
		t.TLSClientConfig = config
	}
	return t
}
