package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/flex-provisioner/flex-provisioner/internal/answerlimit"
)

// The commands that audit prints name no kubeconfig, and are to work in the shell in which kubectl
// does.
func TestAdministratorsConnectAsKubectlDoes(t *testing.T) {
	const fromEnvironment, fromFlag = "http://127.0.0.1:1", "http://127.0.0.1:2"
	t.Setenv("KUBECONFIG", kubeconfigFor(t, fromEnvironment))
	for kubeconfig, want := range map[string]string{"": fromEnvironment, kubeconfigFor(t, fromFlag): fromFlag} {
		cfg, err := (&settings{kubeconfig: kubeconfig}).connectAsAdmin()
		if err != nil {
			t.Fatal(err)
		}
		if cfg.Host != want {
			t.Errorf("with --kubeconfig=%q the API server is %s, want %s", kubeconfig, cfg.Host, want)
		}
	}
}

// What reads events bounds how much of an answer is read, and a client must heed it.
func TestEveryClientHeedsABoundOfAnAnswer(t *testing.T) {
	const most = 1000
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, strings.Repeat(" ", 2*most))
	}))
	defer server.Close()
	s := &settings{kubeconfig: kubeconfigFor(t, server.URL)}
	for name, connect := range map[string]func() (*rest.Config, error){"dispatcher": s.connect, "administrator": s.connectAsAdmin} {
		cfg, err := connect()
		if err != nil {
			t.Fatal(err)
		}
		client, err := kubernetes.NewForConfig(cfg)
		if err != nil {
			t.Fatal(err)
		}
		var tooLarge *http.MaxBytesError
		if _, err := client.CoreV1().Events("ns").List(answerlimit.With(t.Context(), most), metav1.ListOptions{}); !errors.As(err, &tooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
