package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// rig runs the command for one claim, as a process between proxies that count its requests.
type rig struct {
	t      *testing.T
	uid    string
	api    string
	cinder store
	kube   *kubeAPI
	dir    string
	// also are further properties of the class.
	also map[string]string
	said bytes.Buffer

	// login is the variable by which the process finds the proxy of Cinder or keystone.
	login, kubeconfig string

	mu       sync.Mutex
	requests int
	limit    int
	process  *os.Process
	killed   bool
	// changes are the requests that change something, in their order.
	changes []string
}

func newRig(t *testing.T, cinder store, api string) *rig {
	t.Helper()
	r := &rig{
		t: t, uid: strings.ToLower(rand.Text()), api: api, cinder: cinder, kube: &kubeAPI{objects: map[string]map[string]any{}},
		dir: t.TempDir(),
	}
	kube := httptest.NewServer(r.kube)
	t.Cleanup(kube.Close)
	r.login = r.proxies(cinder)
	r.kubeconfig = filepath.Join(r.dir, "kubeconfig")
	r.write("kubeconfig", []byte("apiVersion: v1\nkind: Config\ncurrent-context: x\n"+
		"clusters: [{name: x, cluster: {server: "+r.proxy(kube.URL, as)+"}}]\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n"+
		"users: [{name: x, user: {}}]\n"))
	return r
}

// proxies starts proxies of Cinder and its keystone. Keystone's catalog contains Cinder's address,
// which is replaced by the proxy's.
func (r *rig) proxies(cinder store) (login string) {
	r.t.Helper()
	endpoint := r.proxy(cinder.endpoint, as)
	if cinder.keystone == "" {
		return "OS_CINDER_ENDPOINT=" + endpoint
	}
	there, here := []byte(origin(r.t, cinder.endpoint)), []byte(origin(r.t, endpoint))
	return "OS_AUTH_URL=" + r.proxy(cinder.keystone, func(body []byte) []byte { return bytes.ReplaceAll(body, there, here) })
}

// as returns an answer unchanged.
func as(body []byte) []byte { return body }

func origin(t *testing.T, of string) string {
	t.Helper()
	u, err := url.Parse(of)
	if err != nil {
		t.Fatal(err)
	}
	return u.Scheme + "://" + u.Host
}

// proxy starts a proxy of a server. It may change the server's answers, and kills the process once
// the server has answered the last request that the process may send.
func (r *rig) proxy(to string, change func([]byte) []byte) string {
	r.t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		r.t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: target.Scheme, Host: target.Host})
	forward.ModifyResponse = func(answer *http.Response) error {
		if err := rewrite(answer, change); err != nil {
			return err
		}
		return r.counted()
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		r.note(request)
		forward.ServeHTTP(w, request)
	}))
	r.t.Cleanup(server.Close)
	return server.URL + target.Path
}

// note notes a request that changes something: an action of Cinder by its name, any other by method
// and resource.
func (r *rig) note(request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the process was killed
	}
	request.Body = io.NopCloser(bytes.NewReader(body))
	change := ""
	for _, resource := range []string{"volumes", "attachments", "secrets", "persistentvolumes"} {
		if request.Method != http.MethodGet && slices.Contains(strings.Split(request.URL.Path, "/"), resource) {
			change = request.Method + " " + resource
		}
	}
	var action map[string]any
	if strings.HasSuffix(request.URL.Path, "/action") && json.Unmarshal(body, &action) == nil {
		change = strings.Join(slices.Collect(maps.Keys(action)), " ")
	}
	if change == "" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes = append(r.changes, change)
}

func rewrite(answer *http.Response, change func([]byte) []byte) error {
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	body = change(body)
	answer.Body = io.NopCloser(bytes.NewReader(body))
	answer.ContentLength = int64(len(body))
	answer.Header.Set("Content-Length", strconv.Itoa(len(body)))
	return nil
}

// counted counts a request that was answered, and kills the process after the last one that it may
// send.
func (r *rig) counted() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests++
	if r.limit > 0 && r.requests >= r.limit {
		r.killed = true
		return r.process.Kill()
	}
	return nil
}

// killAt executes a run whose k-th request is its last. It reports whether the run was killed, and
// how many requests it sent.
func (r *rig) killAt(k int, do func() int) (killed bool, made int) {
	r.mu.Lock()
	r.requests, r.limit, r.killed = 0, k, false
	r.mu.Unlock()
	do()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.limit = 0
	return r.killed, r.requests
}

// run executes a verb in a process of its own. It returns the exit code, which is negative if the
// process was killed.
func (r *rig) run(verb contract.Verb) int {
	r.t.Helper()
	object, undo := r.kube.pv(contract.PVName(r.uid)), false
	if object == nil {
		object, undo = skeleton(r.uid), verb == contract.Delete
	}
	request := r.request(r.uid)
	request.Undo = undo
	return r.ask(verb, object, request)
}

func (r *rig) request(uid string) contract.Request {
	properties := map[string]string{"attach-api": r.api}
	maps.Copy(properties, r.also)
	return contract.Request{
		UID: uid, PVName: contract.PVName(uid), Namespace: "shop", Name: "data", Class: "silver", Size: 1 << 30, Properties: properties,
	}
}

// ask executes a verb for some requests. The object is what pv.json holds.
func (r *rig) ask(verb contract.Verb, object any, requests ...contract.Request) int {
	r.t.Helper()
	text, err := contract.Requests{Version: contract.Version, Verb: verb, Items: requests}.Encode()
	if err != nil {
		r.t.Fatal(err)
	}
	r.write("request.json", []byte(text))
	pv, err := json.Marshal(object)
	if err != nil {
		r.t.Fatal(err)
	}
	r.write("pv.json", pv)
	return r.start(verb)
}

func (r *rig) start(verb contract.Verb) int {
	r.t.Helper()
	r.said.Reset()
	cmd := exec.CommandContext(r.t.Context(), r.cinder.binary, string(verb),
		"--dir", r.dir, "--kubeconfig", r.kubeconfig, "--namespace", "ours")
	cmd.Env = append([]string{r.login, "HOME=" + r.dir}, r.cinder.env...)
	cmd.Stderr = &r.said
	r.mu.Lock()
	err := cmd.Start()
	r.process = cmd.Process
	r.mu.Unlock()
	if err != nil {
		r.t.Fatal(err)
	}
	err = cmd.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok {
		r.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

func (r *rig) write(name string, data []byte) {
	r.t.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, name), data, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

func skeleton(uid string) map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolume",
		"metadata": map[string]any{
			"name": contract.PVName(uid), "annotations": map[string]string{contract.AnnClaimUID: uid},
		},
		"spec": map[string]any{
			"capacity": map[string]string{"storage": "1Gi"}, "accessModes": []string{"ReadWriteOnce"},
			"claimRef": map[string]string{"namespace": "shop", "name": "data", "uid": uid},
		},
	}
}

// count fails the test unless the claim has that many volumes, Secrets and PVs. The dispatcher
// would have deleted the PV after a delete.
func (r *rig) count(k, want int) {
	r.t.Helper()
	if want == 0 {
		r.kube.drop("/api/v1/persistentvolumes/" + contract.PVName(r.uid))
	}
	got := fmt.Sprint(r.cinder.volumes(r.t, r.uid), r.kube.count("secrets"), r.kube.count("persistentvolumes"))
	if got != fmt.Sprint(want, want, want) {
		r.t.Fatalf("kill point %d: %s volumes, Secrets and PVs are left, want %d of each", k, got, want)
	}
}
