package transport_test

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/transport"
)

// answering returns the URL of a server whose answers have a size, unpacked.
func answering(t *testing.T, size int64, packed bool) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var out io.WriteCloser = struct {
			io.Writer
			io.Closer
		}{w, io.NopCloser(nil)}
		if packed {
			w.Header().Set("Content-Encoding", "gzip")
			out = gzip.NewWriter(w)
		}
		_, _ = io.CopyN(out, zeros{}, size) // the client may not read all of it
		_ = out.Close()
	}))
	t.Cleanup(server.Close)
	return server.URL
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// read asks a server, and counts what is read of its answer.
func read(t *testing.T, at string) (int64, error) {
	t.Helper()
	client := http.Client{Transport: transport.New(nil)}
	answer, err := client.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	return io.Copy(io.Discard, answer.Body)
}

func TestAnswersAreReadUpToALimit(t *testing.T) {
	for _, packed := range []bool{false, true} {
		if n, err := read(t, answering(t, transport.MaxAnswer, packed)); n != transport.MaxAnswer || err != nil {
			t.Errorf("packed %t: %d bytes, %v", packed, n, err)
		}
		at := answering(t, transport.MaxAnswer+1, packed) + "/volumes"
		n, err := read(t, at)
		tooLarge, ok := errors.AsType[*transport.AnswerError](err)
		if n != transport.MaxAnswer || !ok || err.Error() != "GET "+at+": the answer is larger than the limit of 32 MiB" || tooLarge.Asked != "GET "+at {
			t.Errorf("packed %t: %d bytes, %v", packed, n, err)
		}
	}
}
