package answerlimit_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flex-provisioner/flex-provisioner/internal/answerlimit"
)

// An answer may be compressed a thousand times.
func TestNoMoreOfAnAnswerIsReadThanItsContextAllows(t *testing.T) {
	const most = 10_000
	for name, compress := range map[string]bool{"plain": false, "compressed": true} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				text := fmt.Sprintf(`{"kind":"Event","apiVersion":"v1","message":%q}`, strings.Repeat("x", most))
				w.Header().Set("Content-Type", "application/json")
				if !compress || !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
					fmt.Fprint(w, text)
					return
				}
				w.Header().Set("Content-Encoding", "gzip")
				zip := gzip.NewWriter(w)
				defer zip.Close()
				fmt.Fprint(zip, text)
			}))
			defer server.Close()
			cfg := &rest.Config{Host: server.URL}
			answerlimit.Wrap(cfg)
			client, err := kubernetes.NewForConfig(cfg)
			if err != nil {
				t.Fatal(err)
			}
			events := client.CoreV1().Events("ns")
			if _, err := events.Get(t.Context(), "large", metav1.GetOptions{}); err != nil {
				t.Errorf("without a limit: %v", err)
			}
			if _, err := events.Get(answerlimit.With(t.Context(), 2*most), "large", metav1.GetOptions{}); err != nil {
				t.Errorf("with a limit above its size: %v", err)
			}
			var tooLarge *http.MaxBytesError
			if _, err := events.Get(answerlimit.With(t.Context(), most), "large", metav1.GetOptions{}); !errors.As(err, &tooLarge) {
				t.Errorf("with a limit below its size: %v", err)
			}
		})
	}
}
