//go:build e2e

// Package e2e holds the facts that hold on a real cluster with a real Cinder. hack/e2e.sh brings
// both up and runs this package's binary inside the lab's network. Cinder is read by plain HTTP,
// tgt by tgtadm, a node's directories on the node: nothing here trusts the code that it tests, so
// names are written out.
package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// The cluster. TestMain connects before any test runs.
var (
	kube       kubernetes.Interface
	kubeConfig *rest.Config
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	ctx := context.Background()
	flag.Parse()
	if flag.Lookup("test.list").Value.String() != "" {
		return m.Run() // which lists the tests, with no cluster, and runs none
	}
	before, err := prepare(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e cannot begin:", err)
		return 2
	}
	began := time.Now()
	if err := markAudit(ctx, auditBegins); err != nil {
		fmt.Fprintln(os.Stderr, "e2e cannot begin:", err)
		return 2
	}
	code := m.Run()
	for _, check := range []func() error{
		func() error { return nothingNew(ctx, before) },
		func() error { return permissionsFit(ctx, began, code == 0 && isWhole()) },
	} {
		if err := check(); err != nil {
			fmt.Fprintln(os.Stderr, "FAIL: after all tests:", err)
			code = 1
		}
	}
	return code
}

// prepare connects, and checks early that everything is there that the tests need.
func prepare(ctx context.Context) (map[string]bool, error) {
	var err error
	if kubeConfig, err = clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG")); err != nil {
		return nil, fmt.Errorf("read KUBECONFIG: %w", err)
	}
	kubeConfig.QPS, kubeConfig.Burst, kubeConfig.Timeout = 200, 400, 30*time.Second
	if kube, err = kubernetes.NewForConfig(kubeConfig); err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	if err := poll(ctx, time.Minute, dispatchersReady); err != nil {
		return nil, err
	}
	if err := collectPasswords(ctx); err != nil {
		return nil, err
	}
	return belongings(ctx)
}

// nothingNew waits until nothing is left of what the tests made in the storage and in Kubernetes.
func nothingNew(ctx context.Context, before map[string]bool) error {
	return poll(ctx, time.Minute, func(ctx context.Context) error {
		now, err := belongings(ctx)
		if err != nil {
			return err
		}
		var left []error
		for thing := range now {
			if !before[thing] {
				left = append(left, errors.New(thing+" is left"))
			}
		}
		return errors.Join(left...)
	})
}

// belongings returns the names of all objects of the dispatcher and its images in the whole cluster
// and in Cinder.
func belongings(ctx context.Context) (map[string]bool, error) {
	found := map[string]bool{}
	volumes, err := cinderVolumes(ctx)
	if err != nil {
		return nil, err
	}
	for _, v := range volumes {
		found["volume "+v.ID+" ("+v.Name+")"] = true
	}
	pvs, err := kube.CoreV1().PersistentVolumes().List(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("list PersistentVolumes: %w", err)
	}
	for _, pv := range pvs.Items {
		found["PersistentVolume "+pv.Name] = true
	}
	jobs, err := kube.BatchV1().Jobs("").List(ctx, all)
	if err != nil {
		return nil, fmt.Errorf("list Jobs: %w", err)
	}
	for _, job := range jobs.Items {
		if !released(job) {
			found["the record finalizer of Job "+job.Name] = true
		}
	}
	secrets, err := kube.CoreV1().Secrets("").List(ctx, labelled("flex-provisioner.io/claim-uid"))
	if err != nil {
		return nil, fmt.Errorf("list Secrets: %w", err)
	}
	for _, secret := range secrets.Items {
		found["Secret "+secret.Name] = true
	}
	return found, nil
}
