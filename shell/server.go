package shell

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

const (
	// tries is how often one run asks the API server. The dispatcher starts another run later.
	tries = 4
	// longest is the longest time between two of them.
	longest = 10 * time.Second
	// patience is how long one request may take.
	patience = 15 * time.Second
	// largest is more than an object of Kubernetes can have.
	largest = 4 << 20
	// quoted is how much of an answer an error repeats.
	quoted = 700
)

// server is the API server, as the pod's ServiceAccount uses it.
type server struct {
	url, token string
	client     *http.Client
	sleep      func(time.Duration)
}

// server returns the API server. Its error is fs.ErrNotExist if the pod has no token.
func (in *container) server() (*server, error) {
	token, err := os.ReadFile(filepath.Join(in.account, "token"))
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(filepath.Join(in.account, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("the pod has a token, but not the certificate of the API server: %v", err) //nolint:errorlint // a pod without a token is another case
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(authority)
	address := in.property(contract.PropKubeAPI)
	if address == "" { // by hand, or in a pod of another kind
		address = net.JoinHostPort(in.get("KUBERNETES_SERVICE_HOST"), cmp.Or(in.get("KUBERNETES_SERVICE_PORT"), "443"))
	}
	if !strings.Contains(address, "://") {
		address = "https://" + address
	}
	return &server{
		url: strings.TrimSuffix(address, "/"), token: strings.TrimSpace(string(token)), sleep: in.sleep,
		client: &http.Client{
			Timeout: patience,
			// The proxy of the environment is that of the storage, and need not reach the API server.
			Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

// laterError is a failure that another try may not meet.
type laterError struct {
	error
	after time.Duration // at least
}

// create creates the PV of a claim. It succeeds if the PV is there: the answer to an earlier
// request, of this run or another, may be lost.
func (s *server) create(pv object, uid string) (says string, err error) {
	body, err := json.Marshal(pv)
	if err != nil {
		return "", err
	}
	name := text(pv, "metadata", "name")
	err = s.patiently(func() (err error) {
		says, err = s.createOnce(name, uid, body)
		return err
	})
	return says, err
}

// patiently repeats a request that may succeed later.
func (s *server) patiently(request func() error) error {
	wait := time.Second
	for try := 1; ; try++ {
		err := request()
		later, ok := errors.AsType[laterError](err)
		if !ok || try == tries {
			return err
		}
		s.sleep(min(max(wait, later.after), longest))
		wait *= 2
	}
}

func (s *server) createOnce(name, uid string, body []byte) (says string, err error) {
	const all = "/api/v1/persistentvolumes"
	answer, err := s.ask(http.MethodPost, all+"?fieldValidation=Strict", body)
	switch {
	case err != nil:
		return "", err
	case answer.code == http.StatusConflict:
		return s.isOurs(name, uid, all+"/"+url.PathEscape(name))
	case answer.code/100 != 2:
		return "", fmt.Errorf("the API server refuses the PersistentVolume %s: %s. Remedy: correct the script or the image, its config or its permissions", name, answer.message())
	}
	return "PersistentVolume " + name + " is created", nil
}

// isOurs checks the PV that has the name already.
func (s *server) isOurs(name, uid, path string) (says string, err error) {
	answer, err := s.ask(http.MethodGet, path, nil)
	if err != nil {
		return "", err
	}
	if answer.code == http.StatusNotFound {
		return "", laterError{error: fmt.Errorf("the PersistentVolume %s was deleted meanwhile", name)}
	}
	if answer.code != http.StatusOK {
		return "", fmt.Errorf("the PersistentVolume %s exists already, but the API server does not show it: %s", name, answer.message())
	}
	there, err := decode(answer.body)
	if err != nil {
		return "", laterError{error: fmt.Errorf("read the PersistentVolume %s: %w", name, err)}
	}
	owner := text(there, "metadata", "annotations", contract.AnnClaimUID)
	if owner != uid || uid == "" {
		return "", fmt.Errorf("a PersistentVolume %s exists already, and is not for this claim: its annotation %s is %q instead of %q, and its claim is %q. "+
			"Remedy: find out what has created it, and delete it if it is not in use", name, contract.AnnClaimUID, oneLine(owner), uid,
			oneLine(text(there, "spec", "claimRef", "namespace")+"/"+text(there, "spec", "claimRef", "name")))
	}
	if text(there, "metadata", "deletionTimestamp") != "" {
		return "", fmt.Errorf("the PersistentVolume %s of an earlier run is being deleted. It is created again when it no longer exists", name)
	}
	return "PersistentVolume " + name + " exists already", nil
}

// answer is one of the API server that is not to be asked again.
type answer struct {
	code int
	body []byte
}

// ask makes one request. No answer, and one that says that the server cannot answer now, is a
// laterError.
func (s *server) ask(method, path string, body []byte) (answer, error) {
	request, err := http.NewRequestWithContext(context.Background(), method, s.url+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, fmt.Errorf("the URL of the API server in %s is %q", contract.EnvName(contract.PropKubeAPI), s.url)
	}
	request.Header.Set("Authorization", "Bearer "+s.token)
	request.Header.Set("Accept", "application/json")
	request.Header.Set("User-Agent", "flex")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := s.client.Do(request)
	if err != nil {
		return answer{}, laterError{error: fmt.Errorf("the API server does not answer: %w", err)}
	}
	defer response.Body.Close()
	out := answer{code: response.StatusCode}
	if out.body, err = io.ReadAll(io.LimitReader(response.Body, largest)); err != nil {
		return answer{}, laterError{error: fmt.Errorf("the API server does not answer: %w", err)}
	}
	if out.code == http.StatusTooManyRequests || out.code >= http.StatusInternalServerError {
		seconds, _ := strconv.Atoi(response.Header.Get("Retry-After")) // it may be a date, which is not read
		return answer{}, laterError{
			error: fmt.Errorf("the API server cannot answer: %s", out.message()),
			after: time.Duration(min(max(seconds, 0), int(longest/time.Second))) * time.Second,
		}
	}
	return out, nil
}

// message returns what the API server says, as it says it in a Status.
func (a answer) message() string {
	said := http.StatusText(a.code)
	if status, err := decode(a.body); err == nil {
		said = cmp.Or(text(status, "message"), said)
	}
	return fmt.Sprintf("%d, %s", a.code, contract.Shorten(oneLine(said), quoted))
}
