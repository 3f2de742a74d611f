package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/version"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/pv"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/run"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

const (
	// namespaceFile is where every pod finds its namespace.
	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	// storageTimeout bounds one request. Cinder itself gives a backend a minute to export a volume.
	storageTimeout = 2 * time.Minute
	kubeTimeout    = 30 * time.Second
)

// work puts the parts together and does the verb. It returns the task as far as it was read.
func work(ctx context.Context, verb contract.Verb, opts options) (task input.Task, done run.Report, err error) {
	// To list needs nothing of Kubernetes.
	list := verb == contract.List
	var namespace string
	if !list {
		if namespace, err = ownNamespace(opts.namespace); err != nil {
			return task, done, err
		}
	}
	task, err = input.Read(input.Sources{
		Verb:      verb,
		Dir:       os.DirFS(opts.dir),
		Env:       environment(),
		Namespace: namespace,
		Methods:   cinder.Methods(),
	})
	if err != nil {
		return task, done, err
	}
	var kube kubernetes.Interface
	if !list {
		if kube, err = connectKube(opts.kubeconfig); err != nil {
			return task, done, err
		}
	}
	storage, err := cinder.Connect(ctx, task.Login, http.Client{Timeout: storageTimeout}, wait)
	if err != nil {
		return task, done, err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	build := version.Get()
	log.Info("Starting", "version", build.Version, "commit", build.Commit, "go", build.Go)
	done, err = run.New(volume.NewKeeper(cinder.NewBackend(storage, wait), wait), pv.NewStore(kube), log).Run(ctx, task)
	return task, done, err
}

// ownNamespace is where Secrets go. A pod without a token has none, and could write no PV either.
func ownNamespace(flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	data, err := os.ReadFile(namespaceFile)
	if err != nil {
		return "", &input.Error{Code: contract.ExitConfig, Err: fmt.Errorf(
			"find the pod's namespace: %w; this image writes PVs and Secrets itself, so its config needs a"+
				" service-account-name and no write-pv: dispatcher", err)}
	}
	return strings.TrimSpace(string(data)), nil
}

func connectKube(kubeconfig string) (kubernetes.Interface, error) {
	config, err := kubeConfig(kubeconfig)
	if err != nil {
		return nil, &input.Error{Code: contract.ExitConfig, Err: fmt.Errorf("find the Kubernetes API: %w", err)}
	}
	config.Timeout = kubeTimeout
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, &input.Error{Code: contract.ExitConfig, Err: fmt.Errorf("prepare requests to Kubernetes: %w", err)}
	}
	return kube, nil
}

func kubeConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		return rest.InClusterConfig()
	}
	return clientcmd.BuildConfigFromFlags("", kubeconfig)
}

func environment() map[string]string {
	env := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	return env
}

// wait is the domain's clock.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
