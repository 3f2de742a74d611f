//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	storagev1 "k8s.io/api/storage/v1"
)

// dispatcherBinary is the one in the image, too: hack/e2e.sh builds the image from it.
const dispatcherBinary = "../../bin/flex-dispatcher"

// process is a dispatcher of the test's own beside those of the Deployment: it serves a provisioner
// of its own, and the test's namespace is its only config namespace, and has its lease.
type process struct {
	cmd   *exec.Cmd
	url   string // of its health
	log   *safeBuffer
	ended chan error
}

// ownProvisioner is the provisioner of the test's own dispatchers. The policies of test/e2e/deploy
// know it by its namespace.
func (w *world) ownProvisioner() string { return w.ns + ".e2e.example.com" }

// oursAlone gives a class to the test's own dispatchers.
func (w *world) oursAlone(class *storagev1.StorageClass) { class.Provisioner = w.ownProvisioner() }

// dispatch starts a dispatcher, with more flags. It has the permissions that are shipped, unless a
// flag names another kubeconfig. It ends with the test, after the claims.
func (w *world) dispatch(flags ...string) *process {
	w.t.Helper()
	if !slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix(f, "--kubeconfig=") }) {
		flags = append(flags, "--kubeconfig="+w.shippedAccount())
	}
	return w.begin(append([]string{"--namespace=" + w.ns, "--leader-elect-resource-namespace=" + w.ns, "--provisioner-name=" + w.ownProvisioner(), "--v=2"}, flags...)...)
}

// begin starts flex-dispatcher, which serves its health at an address of its own.
func (w *world) begin(args ...string) *process {
	w.t.Helper()
	address := w.freeAddress()
	p := &process{url: "http://" + address, log: &safeBuffer{}, ended: make(chan error, 1)}
	p.cmd = exec.CommandContext(w.ctx(), dispatcherBinary, append(args, "--listen="+address)...)
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	w.must(p.cmd.Start(), "start flex-dispatcher")
	go func() { p.ended <- p.cmd.Wait() }()
	w.remove(func() {
		_ = w.stop(p, syscall.SIGKILL) // Wait's error names the signal
		if w.t.Failed() {
			w.t.Logf("---- flex-dispatcher %v\n%s", args, redact(w.ctx(), p.log.String()))
		}
	})
	return p
}

// started is a dispatcher that is ready.
func (w *world) started(flags ...string) *process {
	w.t.Helper()
	p := w.dispatch(flags...)
	w.eventually(toBind, "the test's own dispatcher to be ready", func(ctx context.Context) error {
		_, err := p.get(ctx, "/readyz")
		return err
	})
	return p
}

// stop ends the process by a signal and returns what became of it, once.
func (w *world) stop(p *process, by os.Signal) error {
	w.t.Helper()
	_ = p.cmd.Process.Signal(by) // it may have ended
	return w.waitFor(p)
}

// waitFor waits for the end of the process.
func (w *world) waitFor(p *process) error {
	w.t.Helper()
	select {
	case err := <-p.ended:
		p.ended <- err // for later callers
		return err
	case <-time.After(toBind):
		w.t.Fatalf("the dispatcher does not end")
		return nil
	}
}

// freeAddress returns an address on which no process listened a moment ago.
func (w *world) freeAddress() string {
	w.t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(w.ctx(), "tcp", "10.250.0.1:0")
	w.must(err, "find a free port")
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// get fetches a page of the process's health.
func (p *process) get(ctx context.Context, path string) (string, error) { return page(ctx, p.url+path) }

// pageClient knows no proxy.
var pageClient = http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{}}

// page fetches a page; any answer but 200 is an error.
func page(ctx context.Context, url string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", err
	}
	answer, err := pageClient.Do(request)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s answers %s: %s", url, answer.Status, body)
	}
	return string(body), err
}

// safeBuffer is written by a process while a test reads it.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
