package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// Any pod may ask for metrics. None has the dispatcher keep more than a few kilobytes, or keep them
// for long.
func TestAClientCostsTheHealthServerLittle(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(nil)
	server.Config = healthServer(http.NotFoundHandler())
	server.Start()
	t.Cleanup(server.Close)
	for size, want := range map[int]int{100: http.StatusNotFound, 64 << 10: http.StatusRequestHeaderFieldsTooLarge} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Long", strings.Repeat("x", size))
		answer, err := server.Client().Do(r)
		if err != nil || answer.StatusCode != want {
			t.Errorf("a header of %d bytes: %+v, %v, want %d", size, answer, err, want)
			continue
		}
		_ = answer.Body.Close()
	}
	if s := server.Config; s.ReadTimeout == 0 || s.ReadHeaderTimeout == 0 || s.WriteTimeout == 0 || s.IdleTimeout == 0 {
		t.Errorf("a client that neither writes nor reads keeps its connection: %+v", s)
	}
}

func TestOnlySomeScrapesAreServedAtATime(t *testing.T) {
	t.Parallel()
	at, end := make(chan struct{}), make(chan struct{})
	handler := atMost(2, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case at <- struct{}{}:
			<-end
		case <-r.Context().Done():
		}
	}))
	ask := func() int {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/metrics", http.NoBody))
		return w.Code
	}
	codes := make(chan int)
	for range 2 {
		go func() { codes <- ask() }()
		<-at
	}
	if got := ask(); got != http.StatusServiceUnavailable {
		t.Errorf("the third at a time: %d", got)
	}
	close(end)
	for range 2 {
		if got := <-codes; got != http.StatusOK {
			t.Errorf("one of two: %d", got)
		}
	}
	go func() { codes <- ask() }()
	<-at
	if got := <-codes; got != http.StatusOK {
		t.Errorf("the next one: %d", got)
	}
}
