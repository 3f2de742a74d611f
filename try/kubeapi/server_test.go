package kubeapi

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

const (
	pvs     = "/api/v1/persistentvolumes"
	secrets = "/api/v1/namespaces/flex/secrets"
	pv      = `{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"pvc-1"},` +
		`"spec":{"nfs":{"server":"filer","path":"/x"}}}`
	unknown = `{"metadata":{"name":"pvc-2"},"spec":{"nsf":{"server":"filer"}}}`
	secret  = `{"metadata":{"name":"chap"},"data":{"password":"eA=="}}`
)

// caller is a script with the files of its ServiceAccount.
type caller struct {
	t      *testing.T
	server *Server
	client *http.Client
	token  string
}

func newCaller(t *testing.T, client *fake.Clientset) *caller {
	t.Helper()
	server, err := New(client, "flex")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	files, trusted := server.Files(), x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(files["ca.crt"]) || string(files["namespace"]) != "flex" {
		t.Fatalf("the files are %q", files)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}}
	t.Cleanup(transport.CloseIdleConnections)
	return &caller{t, server, &http.Client{Transport: transport}, string(files["token"])}
}

// reply is an answer of the server, without its body.
type reply struct {
	StatusCode int
	Header     http.Header
}

// ask returns the answer to a request, and the Status of a refusal.
func (c *caller) ask(method, path, body string) (reply, string, metav1.Status) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(
		c.t.Context(), method, c.server.URL()+path, strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+c.token)
	response, err := c.client.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	out := reply{response.StatusCode, response.Header}
	var status metav1.Status
	if response.StatusCode < http.StatusBadRequest {
		return out, string(text), status
	}
	if err := json.Unmarshal(text, &status); err != nil {
		c.t.Fatalf("%s %s is answered by %s", method, path, text)
	}
	return out, string(text), status
}

func TestRequestsAreThoseOfAProvisioner(t *testing.T) {
	c := newCaller(t, fake.NewClientset())
	for _, step := range []struct {
		method, path, body string
		code               int
		says               string
	}{
		{"GET", pvs + "/pvc-1", "", 404, `persistentvolumes \"pvc-1\" not found`},
		{"POST", pvs + "?fieldValidation=Strict", pv, 201, `"kind":"PersistentVolume"`},
		{"POST", pvs + "?fieldValidation=Strict", pv, 409, `persistentvolumes \"pvc-1\" already exists`},
		{"GET", pvs + "/pvc-1", "", 200, `"nfs":{"server":"filer","path":"/x"}`},
		{"POST", pvs + "?fieldValidation=Strict", unknown, 400, `unknown field \"spec.nsf\"`},
		{"GET", pvs + "/pvc-2", "", 404, ""},
		{"POST", pvs, unknown, 201, ""},
		{"POST", pvs, "nothing", 400, "cannot be handled as a PersistentVolume"},
		{"POST", secrets, pv, 400, `PersistentVolume in version \"v1\" cannot be handled as a Secret`},
		{"POST", secrets, `"` + strings.Repeat("x", largest), 400, "too large"},
		{"POST", secrets + "?fieldValidation=Strict", secret, 201, `"kind":"Secret"`},
		{"POST", secrets, secret, 409, ""},
		{"DELETE", secrets + "/chap", `{"preconditions":{"uid":"1"}}`, 400, "not supported"},
		{"DELETE", secrets + "/chap?dryRun=All", "", 400, "not supported"},
		{"DELETE", secrets + "/chap", "", 200, `"Success"`},
		{"DELETE", secrets + "/chap", "", 404, ""},
		{"GET", secrets + "/chap", "", 403, "cannot GET " + secrets},
		{"POST", "/api/v1/namespaces/default/secrets", secret, 403, "cannot POST"},
		{"DELETE", pvs + "/pvc-1", "", 403, "cannot DELETE"},
		{"GET", pvs, "", 403, ""},
		{"GET", "/version", "", 403, ""},
	} {
		response, text, status := c.ask(step.method, step.path, step.body)
		if response.StatusCode != step.code || !strings.Contains(text, step.says) {
			t.Errorf("%s %s: %d %s", step.method, step.path, response.StatusCode, text)
		}
		if step.code >= 400 && (status.Kind != "Status" || int(status.Code) != step.code) {
			t.Errorf("%s %s: the Status is %+v", step.method, step.path, status)
		}
	}
}

func TestAnotherTokenIsRefused(t *testing.T) {
	c := newCaller(t, fake.NewClientset())
	another := newCaller(t, fake.NewClientset())
	for _, token := range []string{"", another.token, c.token + "x"} {
		c.token = token
		response, text, status := c.ask("POST", pvs, pv)
		if response.StatusCode != http.StatusUnauthorized || status.Reason != metav1.StatusReasonUnauthorized {
			t.Errorf("%q: %d %s", token, response.StatusCode, text)
		}
	}
}

func TestARefusalOfTheClientReachesTheScript(t *testing.T) {
	denied := apierrors.NewInvalid(metav1.SchemeGroupVersion.WithKind("PV").GroupKind(), "pvc-1", nil)
	denied.ErrStatus.Message = "ValidatingAdmissionPolicy 'own' denied request: another claim"
	for _, test := range []struct {
		err        error
		code       int
		says, wait string
	}{
		{denied, 422, denied.ErrStatus.Message, ""},
		{apierrors.NewTooManyRequests("busy", 7), 429, "busy", "7"},
		{errors.New("connection refused"), 500, "Internal error occurred: connection refused", ""},
	} {
		client := fake.NewClientset()
		client.PrependReactor("create", "persistentvolumes",
			func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, test.err })
		response, text, status := newCaller(t, client).ask("POST", pvs, pv)
		if response.StatusCode != test.code || status.Message != test.says ||
			response.Header.Get("Retry-After") != test.wait {
			t.Errorf("%v: %d %s", test.err, response.StatusCode, text)
		}
	}
}
