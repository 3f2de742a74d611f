package main

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/contract"
)

// build makes the command's binary: a run is a process that can be killed.
func build(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "cinder-provisioner")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the command: %v\n%s", err, out)
	}
	return binary
}

// TestKillPoints kills the process after its k-th request to Cinder or Kubernetes, for every k, and
// runs it again: one volume, one Secret and one PV are left after provision, and none after delete. It
// runs against the Cinder in this process, and against a real one without keystone where
// FLEX_TEST_CINDER names its openrc file.
func TestKillPoints(t *testing.T) {
	binary := build(t)
	for name, cinder := range cinders(t) {
		cinder.binary = binary
		for _, api := range []string{"attachments", "reserve"} {
			t.Run(name+", "+api, func(t *testing.T) {
				killProvision(t, cinder, api)
				killDelete(t, cinder, api)
			})
		}
	}
}

func killProvision(t *testing.T, cinder store, api string) {
	t.Helper()
	killEverywhere(t, "provision, "+api, func() (*rig, func() int) {
		r := newRig(t, cinder, api)
		return r, func() int { return r.run(contract.Provision) }
	}, func(r *rig, k int) {
		if code := r.run(contract.Provision); code != contract.ExitDone {
			t.Fatalf("kill point %d: the second run ended with %d: %s", k, code, r.said.String())
		}
		r.count(k, 1)
		r.run(contract.Delete)
		r.count(k, 0)
	})
}

func killDelete(t *testing.T, cinder store, api string) {
	t.Helper()
	killEverywhere(t, "delete, "+api, func() (*rig, func() int) {
		r := newRig(t, cinder, api)
		if code := r.run(contract.Provision); code != contract.ExitDone {
			t.Fatalf("provision ended with %d: %s", code, r.said.String())
		}
		return r, func() int { return r.run(contract.Delete) }
	}, func(r *rig, k int) {
		if code := r.run(contract.Delete); code != contract.ExitDone {
			t.Fatalf("kill point %d: the second run ended with %d: %s", k, code, r.said.String())
		}
		r.count(k, 0)
	})
}

// killEverywhere goes on until a run ends before its k-th request.
func killEverywhere(t *testing.T, name string, prepare func() (*rig, func() int), check func(r *rig, k int)) {
	t.Helper()
	for k := 1; ; k++ {
		r, do := prepare()
		killed, made := r.killAt(k, do)
		check(r, k)
		if killed {
			continue
		}
		t.Logf("%s: %d kill points covered, an unbroken run makes %d requests", name, k-1, made)
		if k-1 < made || made < 5 {
			t.Errorf("%s: %d kill points covered, an unbroken run makes %d requests", name, k-1, made)
		}
		return
	}
}

// rig is one claim's process, between proxies that count its requests.
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

	endpoint, kubeconfig string

	mu       sync.Mutex
	requests int
	limit    int
	process  *os.Process
	killed   bool
}

func newRig(t *testing.T, cinder store, api string) *rig {
	t.Helper()
	r := &rig{
		t: t, uid: strings.ToLower(rand.Text()), api: api, cinder: cinder, kube: &kubeAPI{objects: map[string]map[string]any{}},
		dir: t.TempDir(),
	}
	kube := httptest.NewServer(r.kube)
	t.Cleanup(kube.Close)
	r.endpoint = r.proxy(cinder.endpoint)
	r.kubeconfig = filepath.Join(r.dir, "kubeconfig")
	r.write("kubeconfig", []byte("apiVersion: v1\nkind: Config\ncurrent-context: x\n"+
		"clusters: [{name: x, cluster: {server: "+r.proxy(kube.URL)+"}}]\ncontexts: [{name: x, context: {cluster: x, user: x}}]\n"+
		"users: [{name: x, user: {}}]\n"))
	return r
}

// proxy stands before a server and kills the process once the server has answered its last request.
func (r *rig) proxy(to string) string {
	r.t.Helper()
	target, err := url.Parse(to)
	if err != nil {
		r.t.Fatal(err)
	}
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: target.Scheme, Host: target.Host})
	forward.ModifyResponse = func(*http.Response) error {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.requests++
		if r.limit > 0 && r.requests >= r.limit {
			r.killed = true
			return r.process.Kill()
		}
		return nil
	}
	server := httptest.NewServer(forward)
	r.t.Cleanup(server.Close)
	return server.URL + target.Path
}

// killAt does a run whose k-th request is its last, and says how many it made.
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

// run is one run of a verb, in a process of its own. It returns the exit code, negative when killed.
func (r *rig) run(verb contract.Verb) int {
	r.t.Helper()
	object, undo := r.kube.pv(contract.PVName(r.uid)), false
	if object == nil {
		object, undo = r.skeleton(), verb == contract.Delete
	}
	requests := contract.Requests{Version: contract.Version, Verb: verb, Items: []contract.Request{{
		UID: r.uid, PVName: contract.PVName(r.uid), Namespace: "shop", Name: "data", Class: "silver", Size: 1 << 30, Undo: undo,
		Properties: map[string]string{"attach-api": r.api},
	}}}
	maps.Copy(requests.Items[0].Properties, r.also)
	text, err := requests.Encode()
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
	cmd.Env = append([]string{
		"OS_CINDER_ENDPOINT=" + r.endpoint, "HOME=" + r.dir,
	}, r.cinder.env...)
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

func (r *rig) skeleton() map[string]any {
	return map[string]any{
		"apiVersion": "v1", "kind": "PersistentVolume",
		"metadata": map[string]any{
			"name": contract.PVName(r.uid), "annotations": map[string]string{contract.AnnClaimUID: r.uid},
		},
		"spec": map[string]any{
			"capacity": map[string]string{"storage": "1Gi"}, "accessModes": []string{"ReadWriteOnce"},
			"claimRef": map[string]string{"namespace": "shop", "name": "data", "uid": r.uid},
		},
	}
}

// count wants so many volumes, Secrets and PVs of the claim. The dispatcher would have removed the PV
// after a delete.
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
