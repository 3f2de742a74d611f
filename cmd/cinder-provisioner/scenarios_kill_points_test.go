package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// build returns the command's binary, which is built once, unless FLEX_TEST_BINARY names one. Only a
// process can be killed.
func build(t *testing.T) string {
	t.Helper()
	if binary := os.Getenv("FLEX_TEST_BINARY"); binary != "" {
		return binary
	}
	binary, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return binary
}

var built = sync.OnceValues(func() (string, error) {
	binary := filepath.Join(dirOfAll, "cinder-provisioner")
	cmd := exec.CommandContext(context.Background(), "go", "build", "-o", binary, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the command: %w\n%s", err, out)
	}
	return binary, nil
})

// dirOfAll is a directory for all tests.
var dirOfAll string

func TestMain(m *testing.M) {
	var err error
	if dirOfAll, err = os.MkdirTemp("", "cinder-provisioner-"); err != nil {
		panic(err)
	}
	code := m.Run()
	if err := os.RemoveAll(dirOfAll); err != nil {
		panic(err)
	}
	os.Exit(code)
}

// The process is killed after its k-th request to keystone, Cinder or Kubernetes, for every k, and
// run again. Provision leaves one volume, one Secret and one PV; delete leaves none.
func TestRunKilledAtAnyRequestIsCompletedByTheNext(t *testing.T) {
	eachCinder(t, func(t *testing.T, s store) {
		t.Helper()
		for _, api := range s.exports() {
			t.Run(api+"/provision", func(t *testing.T) { killProvision(t, s, api) })
			t.Run(api+"/delete", func(t *testing.T) { killDelete(t, s, api) })
		}
	})
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

// killEverywhere increases k until a run ends before its k-th request.
func killEverywhere(t *testing.T, name string, prepare func() (*rig, func() int), check func(r *rig, k int)) {
	t.Helper()
	for k := 1; ; k++ {
		r, do := prepare()
		killed, made := r.killAt(k, do)
		check(r, k)
		if killed {
			continue
		}
		said := fmt.Sprintf("%s: %d kill points covered, an unbroken run makes %d requests", name, k-1, made)
		t.Log(said)
		// The status of a slow Cinder's volume is requested more often in one run than in another.
		if k-1 < made || made < 5 {
			t.Error(said)
		}
		return
	}
}
