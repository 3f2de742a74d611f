package shell

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// uid returns the UID of the n-th claim.
func uid(n int) string { return fmt.Sprintf("aaaaaaaa-2222-3333-4444-%012d", n) }

// skeletonOf returns the PV of a claim as the dispatcher begins it.
func skeletonOf(id string) string {
	return fmt.Sprintf(`{"apiVersion":"v1","kind":"PersistentVolume","metadata":{"name":"pvc-%[1]s","annotations":{"flex-provisioner.io/claim-uid":"%[1]s",`+
		`"flex-provisioner.io/config-revision":"flex-provisioner/r-1"}},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],`+
		`"volumeMode":"Filesystem","claimRef":{"namespace":"default","name":"data","uid":"%[1]s"}}}`, id)
}

// pod is a container with the files of a run, in a directory, and its environment.
type pod struct {
	t    *testing.T
	dir  string
	env  map[string]string
	says bytes.Buffer
	// slept is how long it has waited.
	slept []time.Duration
}

// newPod returns the pod of a run for so many claims.
func newPod(t *testing.T, verb contract.Verb, claims int, change ...func(n int, r *contract.Request)) *pod {
	t.Helper()
	p := &pod{t: t, dir: t.TempDir(), env: map[string]string{}}
	all := contract.Requests{Version: contract.Version, Verb: verb}
	var pvs []string
	for n := range claims {
		r := contract.Request{
			UID: uid(n), PVName: contract.PVName(uid(n)), Namespace: "default", Name: fmt.Sprintf("data-%d", n), Class: "gold", Size: 1 << 30,
			AccessModes: []string{"ReadWriteOnce", "ReadOnlyMany"}, VolumeMode: "Filesystem", ReclaimPolicy: "Delete", ClusterUID: "c-1",
			SelectedNode: "node1", SelectedTopology: map[string]string{contract.TopologyHostname: "host1"},
		}
		for _, f := range change {
			f(n, &r)
		}
		all.Items, pvs = append(all.Items, r), append(pvs, skeletonOf(uid(n)))
	}
	text, err := all.Encode()
	must(t, err)
	p.write("request.json", text)
	pv := pvs[0]
	if claims > 1 {
		pv = `{"apiVersion":"v1","kind":"List","items":[` + strings.Join(pvs, ",") + `]}`
	} else {
		for _, v := range all.Items[0].OwnVariables() {
			p.env[contract.EnvName(v.Property)] = v.Value
		}
	}
	p.write("pv.json", pv)
	p.write("message", "")
	p.env["FLEX_TEST_DIR"], p.env["FLEX_TERMINATION_LOG"] = p.dir, p.dir+"/message"
	return p
}

func (p *pod) write(name, text string) {
	p.t.Helper()
	path := filepath.Join(p.dir, name)
	must(p.t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(p.t, os.WriteFile(path, []byte(text), 0o600))
}

func (p *pod) message() string {
	p.t.Helper()
	text, err := os.ReadFile(p.dir + "/message")
	must(p.t, err)
	return string(text)
}

// flex runs a verb in this process.
func (p *pod) flex(arguments ...string) int {
	p.says.Reset()
	return execute(&container{
		requests: p.dir + "/request.json", pv: p.dir + "/pv.json", account: p.dir + "/account", out: &p.says, log: &p.says,
		get: func(name string) string { return p.env[name] }, sleep: func(d time.Duration) { p.slept = append(p.slept, d) },
	}, arguments)
}

// environ returns the environment for a process.
func (p *pod) environ(bin string) []string {
	env := []string{"PATH=" + bin + ":/usr/bin:/bin", "TMPDIR=" + p.dir}
	for name, value := range p.env {
		env = append(env, name+"="+value)
	}
	return env
}

// kubernetes is an API server that has PersistentVolumes.
type kubernetes struct {
	t       *testing.T
	mu      sync.Mutex
	pvs     map[string]string // by name
	asked   []string
	answers []func(http.ResponseWriter, *http.Request) // before it answers itself; nil has it do so
}

const token = "s3cr3t-t0ken"

// serve starts the API server of a pod.
func (p *pod) serve(answers ...func(http.ResponseWriter, *http.Request)) *kubernetes {
	p.t.Helper()
	k := &kubernetes{t: p.t, pvs: map[string]string{}, answers: answers}
	p.serveBy(k)
	return k
}

// serveBy makes a handler the API server of a pod.
func (p *pod) serveBy(handler http.Handler) {
	p.t.Helper()
	server := httptest.NewTLSServer(handler)
	p.t.Cleanup(server.Close)
	p.write("account/token", token)
	p.write("account/ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	p.env["FLEX_KUBE_API"] = server.URL
}

// serveAtNoLoopback makes a handler the API server of a pod. Go asks no proxy for an address of the
// loopback interface. This one is none, and Linux connects it to this machine.
func (p *pod) serveAtNoLoopback(handler http.Handler) {
	p.t.Helper()
	address := net.IPv4zero
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(p.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{address},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(p.t, err)
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: key}},
		MinVersion:   tls.VersionTLS12,
	}
	server.StartTLS()
	p.t.Cleanup(server.Close)
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	must(p.t, err)
	p.write("account/token", token)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	p.write("account/ca.crt", string(authority))
	p.env["FLEX_KUBE_API"] = "https://" + net.JoinHostPort(address.String(), port)
}

// says answers a request by a Status.
func says(code int, message string, headers ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "Status", "message": message})
	}
}

// hangsUp ends the connection. It is a lost answer if the server does what is requested before.
func (k *kubernetes) hangsUp(after bool) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		if after {
			k.answer(httptest.NewRecorder(), r)
		}
		panic(http.ErrAbortHandler)
	}
}

func (k *kubernetes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.asked = append(k.asked, r.Method+" "+r.URL.String())
	if got := r.Header.Get("Authorization"); got != "Bearer "+token {
		k.t.Errorf("%s has the header %q", r.URL, got)
	}
	if len(k.answers) > 0 {
		next := k.answers[0]
		k.answers = k.answers[1:]
		if next != nil {
			next(w, r)
			return
		}
	}
	k.answer(w, r)
}

func (k *kubernetes) answer(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/api/v1/persistentvolumes/")
	switch {
	case r.Method == http.MethodGet && k.pvs[name] == "":
		says(http.StatusNotFound, "not found")(w, r)
	case r.Method == http.MethodGet:
		_, _ = w.Write([]byte(k.pvs[name]))
	default:
		var body bytes.Buffer
		_, _ = body.ReadFrom(r.Body)
		pv, err := decode(body.Bytes())
		if err != nil {
			says(http.StatusBadRequest, err.Error())(w, r)
			return
		}
		name = text(pv, "metadata", "name")
		if k.pvs[name] != "" {
			says(http.StatusConflict, "already exists")(w, r)
			return
		}
		k.pvs[name] = body.String()
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body.Bytes())
	}
}
