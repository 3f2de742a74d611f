package main

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/internal/version"
)

// asDispatcher makes the test binary the real command: its flags and its log belong to a process.
const asDispatcher = "TEST_AS_FLEX_DISPATCHER"

func TestMain(m *testing.M) {
	if os.Getenv(asDispatcher) != "" {
		os.Exit(execute())
	}
	os.Exit(m.Run())
}

// aJob is the only object of the API server.
const aJob = `{"metadata":{"name":"provision-u-1","namespace":"flex-provisioner",` +
	`"labels":{"flex-provisioner.io/class":"gone","flex-provisioner.io/verb":"provision"}}}`

// apiServer allows everything, has one Job, grants no lease, and answers no list before answer is
// called.
func apiServer(t *testing.T) (kubeconfig string, answer func()) {
	t.Helper()
	lists := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, `{"apiVersion":"authorization.k8s.io/v1","kind":"SelfSubjectAccessReview","status":{"allowed":true}}`)
		case r.URL.Query().Get("sendInitialEvents") != "": // an older server's answer; the client lists instead
			w.WriteHeader(http.StatusUnprocessableEntity)
			_, _ = io.WriteString(w, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Invalid","code":422}`)
		case r.URL.Query().Get("watch") != "":
			<-r.Context().Done()
		default:
			select {
			case <-lists:
				items := ""
				if strings.HasSuffix(r.URL.Path, "/jobs") {
					items = aJob
				}
				_, _ = io.WriteString(w, `{"metadata":{"resourceVersion":"1"},"items":[`+items+`]}`)
			case <-r.Context().Done():
			}
		}
	}))
	t.Cleanup(server.Close)
	return kubeconfigFor(t, server.URL), func() { close(lists) }
}

// dispatch starts the command. lines are what it logs, as JSON; a line that is something else fails
// the test.
func dispatch(t *testing.T, args ...string) (lines <-chan map[string]any) {
	t.Helper()
	lines, process, ended := start(t, args...)
	t.Cleanup(func() {
		if err := process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := ended(); err != nil {
			t.Errorf("it ended with %v", err)
		}
	})
	return lines
}

// start starts the command. ended waits for its end.
func start(t *testing.T, args ...string) (lines <-chan map[string]any, process *os.Process, ended func() error) {
	t.Helper()
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(os.Environ(), asDispatcher+"=1")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out, read := make(chan map[string]any, 1000), make(chan struct{})
	go func() {
		defer close(read)
		defer close(out)
		for scanner := bufio.NewScanner(log); scanner.Scan(); {
			var line map[string]any
			if err := json.Unmarshal(scanner.Bytes(), &line); err != nil {
				t.Errorf("the log has the line %q, which is no JSON: %v", scanner.Text(), err)
			}
			out <- line
		}
	}()
	return out, cmd.Process, func() error {
		<-read
		return cmd.Wait()
	}
}

// said waits for a line of the log.
func said(t *testing.T, lines <-chan map[string]any, msg string) map[string]any {
	t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case line, more := <-lines:
			if !more {
				t.Fatalf("the log ends before %q", msg)
			}
			if line["msg"] == msg {
				return line
			}
		case <-late:
			t.Fatalf("the log does not say %q", msg)
		}
	}
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	answer, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

func TestVersionPrintsVersionCommitAndGo(t *testing.T) {
	cmd := exec.Command(os.Args[0], "--version")
	cmd.Env = append(os.Environ(), asDispatcher+"=1")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := "flex-dispatcher version " + version.Get().String() + "\n"; string(out) != want {
		t.Errorf("--version prints %q, want %q", out, want)
	}
}

func TestDispatcherIsReadyWhenItsCachesAreFilledAndLogsInJSON(t *testing.T) {
	kubeconfig, answer := apiServer(t)
	lines := dispatch(t, "--kubeconfig="+kubeconfig, "--listen=127.0.0.1:0", "--logging-format=json")
	first, build := said(t, lines, "starting"), version.Get()
	for key, want := range map[string]string{
		"provisioner": "flex-provisioner.io", "version": build.Version, "commit": build.Commit, "go": build.Go,
	} {
		if first[key] != want {
			t.Errorf("the first line has the %s %v, want %s", key, first[key], want)
		}
	}
	address, _ := said(t, lines, "Serving metrics and health checks")["address"].(string)
	url := "http://" + address
	if code, body := get(t, url+"/healthz"); code != http.StatusOK || body != "ok\n" {
		t.Errorf("/healthz answers %d %q", code, body)
	}
	if code, body := get(t, url+"/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(body, "caches") {
		t.Errorf("/readyz answers %d %q before the caches are filled", code, body)
	}
	answer()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		code, body := get(t, url+"/readyz")
		if code == http.StatusOK {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("/readyz still answers %d %q", code, body)
		}
	}
	code, body := get(t, url+"/metrics")
	for _, word := range []string{`workqueue_depth{name="claims"}`, "go_goroutines", `leader_election_master_status{name="flex-dispatcher"} 0`, `flex_dispatcher_jobs{class="",state="running",verb="provision"} 1`} {
		if code != http.StatusOK || !strings.Contains(body, word) {
			t.Errorf("/metrics answers %d without %s", code, word)
		}
	}
}

// Where no policy stamps claims, the log is the only place that says why images know no user.
func TestMissingUserNamesAreLoggedAtStart(t *testing.T) {
	for flag, want := range map[string]int{"--trust-username=false": 1, "--trust-username": 0} {
		t.Run(flag, func(t *testing.T) {
			kubeconfig, answer := apiServer(t)
			answer()
			lines, found := dispatch(t, "--kubeconfig="+kubeconfig, "--listen=127.0.0.1:0", "--logging-format=json", flag), 0
			for line := range lines {
				msg, _ := line["msg"].(string)
				if strings.HasPrefix(msg, "Images get no user name") && strings.Contains(msg, "deploy/claim-creator") {
					found++
				}
				if msg == "Serving metrics and health checks" {
					break
				}
			}
			if found != want {
				t.Errorf("the log says it %d times, want %d", found, want)
			}
		})
	}
}
