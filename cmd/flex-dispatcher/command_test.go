package main

import "testing"

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
