package shell

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

func TestWhatTheAPIServerAnswers(t *testing.T) {
	owned := skeletonOf(uid(0))
	type reply = func(http.ResponseWriter, *http.Request)
	for name, test := range map[string]struct {
		there   string // a PV of the name
		answers func(k *kubernetes) []reply
		code    int
		says    string
		asked   int
		slept   []time.Duration
	}{
		"of an earlier run": {there: owned, says: "exists already", asked: 2},
		"of another claim":  {there: strings.ReplaceAll(owned, uid(0), uid(7)), code: 75, says: `"` + uid(7) + `" instead of "` + uid(0) + `", and its claim is "default/data"`, asked: 2},
		"without a claim":   {there: `{"metadata":{}}`, code: 75, says: `claim-uid is "" instead`, asked: 2},
		"one in deletion": {
			there: strings.Replace(owned, `"annotations"`, `"deletionTimestamp":"2026-03-01T08:30:00Z","annotations"`, 1),
			code:  75, says: "being deleted", asked: 2,
		},
		"deleted meanwhile": {
			answers: func(*kubernetes) []reply { return []reply{says(409, "already exists")} },
			says:    "is created", asked: 3, slept: []time.Duration{time.Second},
		},
		"forbidden": {
			answers: func(*kubernetes) []reply {
				return []reply{says(403, "the pod x may write only the PersistentVolume of its own claim\nclaim: forged")}
			},
			code: 75, says: "403, the pod x may write only the PersistentVolume of its own claim claim: forged. Remedy: correct the script or the image", asked: 1,
		},
		"invalid":       {answers: func(*kubernetes) []reply { return []reply{says(422, "spec.nfs: Required value")} }, code: 75, says: "422, spec.nfs: Required value", asked: 1},
		"unknown field": {answers: func(*kubernetes) []reply { return []reply{says(400, `unknown field "spec.nsf"`)} }, code: 75, says: `400, unknown field "spec.nsf"`, asked: 1},
		"a redirect":    {answers: func(*kubernetes) []reply { return []reply{says(307, "", "Location", "https://192.0.2.1/")} }, code: 75, says: "307, Temporary Redirect", asked: 1},
		"hidden":        {there: owned, answers: func(*kubernetes) []reply { return []reply{nil, says(403, "cannot get")} }, code: 75, says: "does not show it: 403, cannot get", asked: 2},
		"busy once":     {answers: func(*kubernetes) []reply { return []reply{says(429, "too many")} }, says: "is created", asked: 2, slept: []time.Duration{time.Second}},
		"busy for long": {
			answers: func(*kubernetes) []reply {
				return []reply{says(429, "", "Retry-After", "5"), says(429, "", "Retry-After", "3600"), says(503, "", "Retry-After", "soon")}
			},
			says: "is created", asked: 4, slept: []time.Duration{5 * time.Second, 10 * time.Second, 4 * time.Second},
		},
		"broken": {
			answers: func(*kubernetes) []reply {
				return []reply{says(500, "etcd"), says(500, "etcd"), says(500, "etcd"), says(500, "etcd")}
			},
			code: 75, says: "cannot answer: 500, etcd", asked: 4, slept: []time.Duration{time.Second, 2 * time.Second, 4 * time.Second},
		},
		"no answer": {
			answers: func(k *kubernetes) []reply {
				return []reply{k.hangsUp(false), k.hangsUp(false), k.hangsUp(false), k.hangsUp(false)}
			},
			code: 75, says: "does not answer", asked: 4, slept: []time.Duration{time.Second, 2 * time.Second, 4 * time.Second},
		},
		"a lost answer": {
			answers: func(k *kubernetes) []reply { return []reply{k.hangsUp(true)} },
			says:    "exists already", asked: 3, slept: []time.Duration{time.Second},
		},
		"a lost answer, and broken then": {
			answers: func(k *kubernetes) []reply { return []reply{k.hangsUp(true), nil, says(500, "etcd")} },
			says:    "exists already", asked: 5, slept: []time.Duration{time.Second, 2 * time.Second},
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPod(t, contract.Provision, 1)
			k := p.serve()
			if test.answers != nil {
				k.answers = test.answers(k)
			}
			if test.there != "" {
				k.pvs["pvc-"+uid(0)] = test.there
			}
			if code := p.flex("pv", nfs); code != test.code || !strings.Contains(p.says.String(), test.says) {
				t.Errorf("exit %d: %s", code, &p.says)
			}
			if len(k.asked) != test.asked || !reflect.DeepEqual(p.slept, test.slept) {
				t.Errorf("it asks %q, and waits %s", k.asked, p.slept)
			}
			if strings.Contains(p.says.String(), token) || strings.Contains(p.says.String(), "\nclaim: ") {
				t.Errorf("it says %s", &p.says)
			}
		})
	}
}

// A server that accepts and says nothing is one that does not answer.
func TestARequestEndsWithoutAnAnswer(t *testing.T) {
	p := newPod(t, contract.Provision, 1)
	silent := func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // without which the end of the connection is not seen
		<-r.Context().Done()
	}
	p.serve(silent)
	api, err := (&container{account: p.dir + "/account", get: func(name string) string { return p.env[name] }}).server()
	must(t, err)
	if api.client.Timeout != patience {
		t.Errorf("a request ends after %s", api.client.Timeout)
	}
	api.client.Timeout = 100 * time.Millisecond
	if says, err := api.createOnce("pvc-1", "1", []byte("{}")); err == nil || !strings.Contains(err.Error(), "does not answer") {
		t.Errorf("it says %s, %v", says, err)
	}
}

// A cluster behind a proxy gives each pod its variables. The API server's address is one of the
// cluster, which no proxy reaches, and NO_PROXY need not name it. Each case is a process of its own,
// since Go reads these variables once.
func TestTheAPIServerIsAskedWithoutTheProxyOfTheEnvironment(t *testing.T) {
	for _, variable := range []string{"HTTPS_PROXY", "https_proxy"} {
		t.Run(variable, func(t *testing.T) {
			var throughProxy atomic.Int32
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				throughProxy.Add(1)
				w.WriteHeader(http.StatusForbidden)
			}))
			t.Cleanup(proxy.Close)
			p := newPod(t, contract.Provision, 1)
			p.serveAtNoLoopback(&kubernetes{t: t, pvs: map[string]string{}})
			p.env[variable] = proxy.URL
			bin := programs(t)
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "flex"), "pv", nfs)
			cmd.Env = p.environ(bin)
			said, err := cmd.CombinedOutput()
			if code := exitOf(t, err); code != contract.ExitDone || throughProxy.Load() != 0 {
				t.Errorf("exit %d, %d requests to the proxy: %s", code, throughProxy.Load(), said)
			}
		})
	}
}
