package transport

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
)

// mostIdle is how many connections to one server are kept for the next request: a batch has no more
// claims, and each sends one request at a time. By default it would be two, and the requests of a
// batch would need new ones all the time.
const mostIdle = 64

const (
	// MaxAnswer is the largest answer that is read, in bytes, unpacked. A page of 1,000 volumes,
	// which is Cinder's own limit (osapi_max_limit), has 2 to 3 MiB.
	MaxAnswer = 32 << 20
	// maxHeader is the largest header of an answer.
	maxHeader = 1 << 20
)

// AnswerError is the failure of a request whose answer is not read any further.
type AnswerError struct {
	// Said is what is wrong with the answer, without addresses.
	Said string
	// Asked is the request.
	Asked string
}

// Error returns one line for the administrator.
func (e *AnswerError) Error() string { return e.Asked + ": " + e.Said }

// New returns a transport that reads no answer larger than MaxAnswer. The config may be nil.
func New(config *tls.Config) http.RoundTripper {
	t := http.DefaultTransport.(*http.Transport).Clone() // the standard library's own
	t.MaxIdleConnsPerHost, t.MaxResponseHeaderBytes = mostIdle, maxHeader
	if config != nil {
		t.TLSClientConfig = config
	}
	return bounded{t}
}

// bounded is a transport whose answers end with an error after MaxAnswer.
type bounded struct{ *http.Transport }

// RoundTrip sends a request.
func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := b.Transport.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	answer.Body = &body{ReadCloser: answer.Body, left: MaxAnswer, asked: r.Method + " " + r.URL.Redacted()}
	return answer, nil
}

// body is the body of an answer of which no more than left bytes may follow.
type body struct {
	io.ReadCloser
	left  int
	asked string
}

// Read reads as far as the body may go. One byte more than that is an error.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left+1)])
	if b.left -= n; b.left >= 0 {
		return n, err
	}
	b.left = 0
	return n - 1, &AnswerError{Said: fmt.Sprintf("the answer is larger than the limit of %d MiB", MaxAnswer>>20), Asked: b.asked}
}

// KeepRedirect has a client return a redirect as the answer that it is. net/http would follow it
// with the token in X-Auth-Token, and from a login with the password: it leaves out only headers
// that it knows.
func KeepRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
