package answerlimit

import (
	"context"
	"net/http"

	"k8s.io/client-go/rest"
)

type key struct{}

// With returns a context in which each request fails whose answer has more than so many bytes, if
// its client was made by a config that Wrap has changed.
func With(ctx context.Context, most int64) context.Context {
	return context.WithValue(ctx, key{}, most)
}

// Wrap lets the clients that are made by a config heed With.
func Wrap(cfg *rest.Config) {
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return limited{next} })
}

// limited counts decompressed bytes: client-go puts it around what decompresses.
type limited struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (l limited) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.next.RoundTrip(r)
	if most, found := r.Context().Value(key{}).(int64); found && err == nil {
		answer.Body = http.MaxBytesReader(nil, answer.Body, most)
	}
	return answer, err
}

// WrappedRoundTripper returns what client-go looks for to close connections.
func (l limited) WrappedRoundTripper() http.RoundTripper { return l.next }
