package projecturl

import (
	"bytes"
	"cmp"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/failure"
)

// How this Cinder wants its URLs. It is found out once for a process, by the first answer that says
// it.
const (
	formUnknown int32 = iota
	formWithout
	formWithProject
)

// projectForm sends requests without a project in the URL, and with one to a Cinder that knows no
// other URLs: before Yoga (20) the project is mandatory, and any word is accepted. From Yoga on a
// word such as the usual "admin" is none.
type projectForm struct {
	next http.RoundTripper
	// endpoint ends with a slash. Requests to other URLs are sent as they are.
	endpoint string
	project  string
	form     atomic.Int32
}

// New returns a transport for requests to an endpoint, which ends with a slash. Nil stands for
// http.DefaultTransport.
func New(next http.RoundTripper, endpoint, project string) http.RoundTripper {
	return &projectForm{next: cmp.Or(next, http.DefaultTransport), endpoint: endpoint, project: project}
}

// RoundTrip sends the request, and once more with the project in the URL if Cinder does not know
// the URL. A Cinder that does not know the URL has executed nothing.
func (p *projectForm) RoundTrip(r *http.Request) (*http.Response, error) {
	if p.form.Load() == formWithout {
		return p.next.RoundTrip(r)
	}
	with := p.withProject(r)
	if with == nil {
		return p.next.RoundTrip(r)
	}
	if p.form.Load() == formWithProject {
		answer, _, err := p.send(with, r, formWithProject)
		return answer, err
	}
	first, isKnown, err := p.send(r, r, formWithout)
	if err != nil || isKnown {
		return first, err
	}
	second, isKnown, err := p.send(with, r, formWithProject)
	if err != nil || isKnown {
		return second, err
	}
	return first, nil
}

// send sends a request, and reports whether Cinder knows its URL. The answer names the request that
// was asked for.
func (p *projectForm) send(r, asked *http.Request, form int32) (answer *http.Response, isKnown bool, err error) {
	if answer, err = p.next.RoundTrip(r); err != nil {
		return nil, false, err
	}
	answer.Request = asked
	if answer.StatusCode == http.StatusNotFound {
		if isKnown, err = isOfAResource(answer); err != nil || !isKnown {
			return answer, false, err
		}
	}
	if answer.StatusCode < http.StatusBadRequest || isKnown {
		p.form.Store(form)
	}
	return answer, true, nil
}

// isOfAResource reports whether an answer 404 is about a volume or attachment that does not exist,
// and not about the URL.
func isOfAResource(answer *http.Response) (bool, error) {
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close() // it was read to its end, or the error says why not
	answer.Body = io.NopCloser(bytes.NewReader(text))
	return failure.IsOfAResource(text), err
}

// withProject returns the request with the project in its URL, or nil if it cannot have one.
func (p *projectForm) withProject(r *http.Request) *http.Request {
	rest, ok := strings.CutPrefix(r.URL.String(), p.endpoint)
	if !ok {
		return nil
	}
	to, err := url.Parse(p.endpoint + url.PathEscape(p.project) + "/" + rest)
	if err != nil {
		return nil
	}
	with := r.Clone(r.Context())
	with.URL = to
	if r.Body == nil || r.Body == http.NoBody {
		return with
	}
	if r.GetBody == nil {
		return nil
	}
	if with.Body, err = r.GetBody(); err != nil {
		return nil
	}
	return with
}
