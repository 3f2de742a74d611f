package shell

import (
	"encoding/json"
	"io"
	"net/http"
	"path"
	"reflect"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// secrets is an API server that has Secrets, and answers some requests otherwise first.
type secrets struct {
	byName  map[string]string
	asked   []string
	answers []int
}

func (s *secrets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.asked = append(s.asked, r.Method+" "+r.URL.String())
	if len(s.answers) > 0 {
		code := s.answers[0]
		s.answers = s.answers[1:]
		if code != 0 {
			w.WriteHeader(code)
			return
		}
	}
	body, _ := io.ReadAll(r.Body)
	var o object
	_ = json.Unmarshal(body, &o)
	name := text(o, "metadata", "name")
	switch _, exists := s.byName[path.Base(r.URL.Path)]; {
	case r.Method == http.MethodPost && s.byName[name] != "":
		w.WriteHeader(http.StatusConflict)
	case r.Method == http.MethodPost:
		s.byName[name] = string(body)
	case !exists:
		w.WriteHeader(http.StatusNotFound)
	default:
		delete(s.byName, path.Base(r.URL.Path))
	}
}

// secretPod returns a pod with the files of a login, and its API server.
func secretPod(t *testing.T, answers ...int) (*pod, *secrets) {
	t.Helper()
	p := newPod(t, contract.Provision, 1)
	s := &secrets{byName: map[string]string{}, answers: answers}
	p.serveBy(s)
	p.write("account/namespace", "flex-provisioner\n")
	p.write("password", "s3cr3t=\n\x00ü")
	p.env["FLEX_STORAGE_CLASS"] = "gold"
	return p, s
}

const (
	secretsPath = "/api/v1/namespaces/flex-provisioner/secrets"
	chapType    = "kubernetes.io/iscsi-chap"
)

func (p *pod) createSecret() int {
	return p.flex("secret", chapType, "node.session.auth.password="+p.dir+"/password")
}

func TestSecretHasTheNameOfThePVAndItsLabels(t *testing.T) {
	p, s := secretPod(t)
	for range 2 { // a rerun replaces it
		if code := p.createSecret(); code != contract.ExitDone || p.says.String() != "flex-provisioner\n" {
			t.Fatalf("exit %d: %s", code, &p.says)
		}
	}
	want := []string{"POST " + secretsPath + "?fieldValidation=Strict"}
	want = append(want, want[0], "DELETE "+secretsPath+"/pvc-"+uid(0), want[0])
	if !reflect.DeepEqual(s.asked, want) {
		t.Errorf("it asks %q", s.asked)
	}
	const written = `{"apiVersion":"v1","data":{"node.session.auth.password":"czNjcjN0PQoAw7w="},"kind":"Secret",` +
		`"metadata":{"labels":{"flex-provisioner.io/claim-uid":"UID","storage-class":"gold"},"name":"pvc-UID"},"type":"kubernetes.io/iscsi-chap"}`
	if got := s.byName["pvc-"+uid(0)]; got != strings.ReplaceAll(written, "UID", uid(0)) {
		t.Errorf("it writes %s", got)
	}
	for range 2 {
		if code := p.flex("secret", "--delete"); code != contract.ExitDone || len(s.byName) > 0 {
			t.Errorf("exit %d: %s, %d are left", code, &p.says, len(s.byName))
		}
	}
}

// A label has at most 63 characters.
func TestSecretOfAClassWithALongNameLacksItsLabel(t *testing.T) {
	for length, want := range map[int]bool{63: true, 64: false} {
		p, s := secretPod(t)
		p.env["FLEX_STORAGE_CLASS"] = strings.Repeat("c", length)
		if code := p.createSecret(); code != contract.ExitDone || strings.Contains(s.byName["pvc-"+uid(0)], "storage-class") != want {
			t.Errorf("%d: exit %d: %s", length, code, s.byName)
		}
	}
}

func TestSecretIsTriedAgainWhileTheServerCannotAnswer(t *testing.T) {
	for name, test := range map[string]struct {
		answers  []int
		verb     []string
		code     int
		says     string
		requests int
	}{
		"later":               {[]int{503, 429, 0}, nil, contract.ExitDone, "", 3},
		"never":               {[]int{503, 503, 503, 503}, nil, contract.ExitTempFail, "cannot answer", 4},
		"forbidden":           {[]int{403}, nil, contract.ExitTempFail, "refuses the Secret pvc-", 1},
		"created meanwhile":   {[]int{409, 0, 409, 0}, nil, contract.ExitDone, "", 4},
		"delete, later":       {[]int{500, 0}, []string{"--delete"}, contract.ExitDone, "", 2},
		"delete is forbidden": {[]int{403}, []string{"--delete"}, contract.ExitTempFail, "does not delete the Secret pvc-", 1},
	} {
		t.Run(name, func(t *testing.T) {
			p, s := secretPod(t, test.answers...)
			var code int
			if test.verb == nil {
				code = p.createSecret()
			} else {
				code = p.flex(append([]string{"secret"}, test.verb...)...)
			}
			if code != test.code || !strings.Contains(p.says.String(), test.says) || len(s.asked) < test.requests {
				t.Errorf("exit %d after %q: %s", code, s.asked, &p.says)
			}
			if strings.Contains(p.says.String(), "s3cr3t") {
				t.Errorf("it says the password: %s", &p.says)
			}
		})
	}
}

// Where it fails, a volume may exist already: no code promises that nothing was made.
func TestSecretThatIsMisusedIsTriedAgain(t *testing.T) {
	for _, arguments := range [][]string{{}, {chapType}, {chapType, "password"}, {chapType, "=x"}, {chapType, "password=/none"}} {
		p, s := secretPod(t)
		if code := p.flex(append([]string{"secret"}, arguments...)...); code != contract.ExitTempFail || len(s.asked) > 0 {
			t.Errorf("%q: exit %d, asks %q", arguments, code, s.asked)
		}
	}
	p, s := secretPod(t)
	delete(p.env, "FLEX_PV_NAME")
	if code := p.createSecret(); code != contract.ExitTempFail || len(s.asked) > 0 {
		t.Errorf("without a PV: exit %d, asks %q", code, s.asked)
	}
}
