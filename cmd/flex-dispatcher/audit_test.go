package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Lists of the API server, by the end of their path; all others are empty.
const (
	nothingThere = ``
	claimLost    = `{"metadata":{"name":"data","namespace":"app","uid":"u"},"spec":{"volumeName":"pvc-u"},"status":{"phase":"Lost"}}`
)

// auditedCluster is an API server with these claims. It tells asked of each list that it is asked
// for, before it answers.
func auditedCluster(t *testing.T, claims string, asked func(*http.Request)) (kubeconfig string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked(r)
		w.Header().Set("Content-Type", "application/json")
		kind, items := `"metadata":{}`, ""
		if filepath.Base(r.URL.Path) == "persistentvolumeclaims" {
			items = claims
		}
		if strings.Contains(r.Header.Get("Accept"), "PartialObjectMetadataList") {
			kind = `"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1"`
		}
		_, _ = io.WriteString(w, `{`+kind+`,"items":[`+items+`]}`)
	}))
	t.Cleanup(server.CloseClientConnections)
	t.Cleanup(server.Close)
	return kubeconfigFor(t, server.URL)
}

// beginAudit starts the command with its own process, of which out has what it has printed when it
// has ended.
func beginAudit(t *testing.T, out io.Writer, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], append([]string{"audit"}, args...)...)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), asDispatcher+"=1"), out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

// codeOf waits for the end of a command.
func codeOf(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	var failed *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

// A script that reads only the code must not take an audit that has seen nothing, or not
// everything, for one that has found nothing.
func TestExitCodeOfAnAuditSaysWhetherItCouldLook(t *testing.T) {
	unread := func(*http.Request) {}
	healthy, lost := "--kubeconfig="+auditedCluster(t, nothingThere, unread), "--kubeconfig="+auditedCluster(t, claimLost, unread)
	for name, test := range map[string]struct {
		args []string
		code int
		says string
	}{
		"no findings":                                {[]string{healthy}, 0, "no findings"},
		"there is a finding":                         {[]string{lost}, 1, "error: 1 findings"},
		"a storage cannot be listed":                 {[]string{healthy, "--storage=none"}, 2, "error: 1 storages could not be listed"},
		"a finding, and a storage is not listed":     {[]string{lost, "--storage=none"}, 2, "error: 1 findings, and 1 storages could not be listed"},
		"a volume of --fix is not left":              {[]string{healthy, "--storage", "--fix=v1"}, 2, "volume v1 is not an orphaned volume"},
		"a finding, and a volume of --fix is not":    {[]string{lost, "--storage", "--fix=v1"}, 2, "error: 1 findings, and volume v1"},
		"there is no cluster":                        {[]string{"--kubeconfig=/none"}, 2, "find the API server"},
		"a file of volumes cannot be read":           {[]string{healthy, "--volumes=gold=/none"}, 2, "/none"},
		"--volumes without a class":                  {[]string{healthy, "--volumes=gold"}, 2, "must have the form CLASS=FILE"},
		"an --allow without a value":                 {[]string{healthy, "--allow=ns/host-path"}, 2, "must have the form NAMESPACE/KIND=VALUE"},
		"a flag that it does not have":               {[]string{healthy, "--repair"}, 2, "unknown flag"},
		"an argument":                                {[]string{healthy, "gold"}, 2, "gold"},
		"--fix without a list of the storage":        {[]string{healthy, "--fix"}, 2, "--fix needs --storage"},
		"--fix while nobody looks":                   {[]string{healthy, "--fix", "--storage", "--watch"}, 2, "--fix cannot be used with --watch"},
		"--fix with volumes that were listed before": {[]string{healthy, "--fix", "--storage", "--volumes=gold=/none"}, 2, "--fix cannot be used with --volumes"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			if code := codeOf(t, beginAudit(t, &out, test.args...)); code != test.code || !strings.Contains(out.String(), test.says) {
				t.Errorf("it ended with %d and said %q, want %d and %q", code, out.String(), test.code, test.says)
			}
		})
	}
}

func TestAnAuditThatIsInterruptedEndsWithTwoUnlessItWatches(t *testing.T) {
	for name, test := range map[string]struct {
		args []string
		code int
	}{
		"once":     {nil, 2},
		"fixing":   {[]string{"--storage", "--fix"}, 2},
		"watching": {[]string{"--watch", "--listen=127.0.0.1:0"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			listed := make(chan struct{}, 100)
			kubeconfig := auditedCluster(t, nothingThere, func(r *http.Request) {
				if filepath.Base(r.URL.Path) == "persistentvolumeclaims" {
					listed <- struct{}{}
					<-r.Context().Done()
				}
			})
			var out strings.Builder
			cmd := beginAudit(t, &out, append(test.args, "--kubeconfig="+kubeconfig)...)
			select {
			case <-listed:
			case <-time.After(time.Minute):
				t.Error("it does not look")
			}
			if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
			if code := codeOf(t, cmd); code != test.code {
				t.Errorf("it ended with %d and said %q, want %d", code, out.String(), test.code)
			}
		})
	}
}
