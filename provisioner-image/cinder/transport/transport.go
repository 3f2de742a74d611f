package transport

import (
	"cmp"
	"crypto/tls"
	"net/http"
)

// mostIdle is how many connections to one server are kept for the next request: at most so many requests are sent at a time.
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

// Limit returns a transport that makes requests wait while so many others are on their way. Without a next one it is
// http.DefaultTransport.
func Limit(next http.RoundTripper, parallel int) http.RoundTripper {
	return &limited{next: cmp.Or(next, http.DefaultTransport), slots: make(chan struct{}, parallel)}
}

// limited is a transport of requests that each need one of a few slots.
type limited struct {
	next  http.RoundTripper
	slots chan struct{}
}

// RoundTrip sends the request once it has a slot. A pause that Cinder asks for takes none.
func (l *limited) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case l.slots <- struct{}{}:
	case <-r.Context().Done():
		if r.Body != nil {
			_ = r.Body.Close() // it was not read
		}
		return nil, r.Context().Err()
	}
	defer func() { <-l.slots }()
	return l.next.RoundTrip(r)
}
