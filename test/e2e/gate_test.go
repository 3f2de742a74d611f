//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// gate delays a Job's pod: an init container requests a page that answers when the gate opens.
type gate struct {
	url     string
	open    func()
	arrived chan struct{}
}

// newGate listens on an address that pods reach.
func (w *world) newGate() *gate {
	w.t.Helper()
	opened, arrived := make(chan struct{}), make(chan struct{})
	var first sync.Once
	url := w.serve(func(_ http.ResponseWriter, r *http.Request) {
		first.Do(func() { close(arrived) })
		select {
		case <-opened:
		case <-r.Context().Done():
		}
	})
	g := &gate{url: url + "/", open: sync.OnceFunc(func() { close(opened) }), arrived: arrived}
	w.whenDone(g.open)
	return g
}

// serve answers the requests of pods as long as the test lasts, at the URL that it returns.
func (w *world) serve(answer http.HandlerFunc) string {
	w.t.Helper()
	var lc net.ListenConfig
	listener, err := lc.Listen(w.ctx(), "tcp", "10.250.0.1:0")
	w.must(err, "listen (this runs inside the lab's network)")
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: answer}
	go func() { _ = server.Serve(listener) }()
	w.remove(func() { _ = server.Close() })
	return "http://" + listener.Addr().String()
}

// template is a pod-template with the gate before the container that provisions.
func (g *gate) template() string {
	return fmt.Sprintf(`
spec:
  initContainers:
    - name: gate
      image: %s
      command: [/bin/sh, -c, "until wget -q -O /dev/null %s; do sleep 1; done"]
      securityContext:
        allowPrivilegeEscalation: false
        capabilities: {drop: [ALL]}
`, bashImage, g.url)
}

// reached waits until a pod has requested the page.
func (w *world) reached(g *gate) {
	w.t.Helper()
	w.eventually(toBind, "the Job's pod to reach the gate", func(context.Context) error {
		select {
		case <-g.arrived:
			return nil
		default:
			return errors.New("nobody came")
		}
	})
}
