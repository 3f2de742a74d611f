package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
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
	// namespaceFile holds the namespace of the pod.
	namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"
	// storageTimeout limits one request. Cinder itself allows a backend a minute to export a
	// volume.
	storageTimeout = 2 * time.Minute
	kubeTimeout    = 30 * time.Second
	// kubeRate and kubeBurst limit requests a second. A batch makes three for each claim, for which
	// client-go's own limit of five a second would be slower than Cinder.
	kubeRate, kubeBurst = 100, 200
)

// work wires the packages and executes the verb for every request.
func work(ctx context.Context, verb contract.Verb, opts options) []run.Ended {
	tasks, err := readTasks(verb, opts)
	if err != nil {
		return run.End([]input.Task{{Verb: verb}}, err)
	}
	first := slices.IndexFunc(tasks, func(t input.Task) bool { return t.Fault == nil })
	if first < 0 {
		return run.End(tasks, nil)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	runner, err := connect(ctx, tasks[first], opts, log)
	if err != nil {
		return run.End(tasks, err)
	}
	build := version.Get()
	log.Info("Starting", "version", build.Version, "commit", build.Commit, "go", build.Go, "requests", len(tasks))
	return runner.RunAll(ctx, tasks)
}

// connect logs in to Kubernetes and to the storage.
func connect(ctx context.Context, task input.Task, opts options, log *slog.Logger) (*run.Runner, error) {
	for _, warning := range task.Login.Warnings {
		log.Warn("Ignored a part of the login", "warning", warning)
	}
	kube, err := kubeFor(task.Verb, opts)
	if err != nil {
		return nil, err
	}
	storage, err := cinder.Connect(ctx, task.Login, http.Client{Timeout: storageTimeout}, wait)
	if err != nil {
		return nil, err
	}
	return run.New(volume.NewKeeper(cinder.NewBackend(storage, wait), wait), pv.NewStore(kube), log, time.Now), nil
}

func readTasks(verb contract.Verb, opts options) ([]input.Task, error) {
	namespace, err := namespaceFor(verb, opts)
	if err != nil {
		return nil, err
	}
	return input.Read(input.Sources{
		Verb:      verb,
		Dir:       os.DirFS(opts.dir),
		Env:       environment(),
		Namespace: namespace,
		Methods:   cinder.Methods(),
	})
}

// namespaceFor returns the namespace of the verb's Secrets. A list needs nothing of Kubernetes.
func namespaceFor(verb contract.Verb, opts options) (string, error) {
	if verb == contract.List {
		return "", nil
	}
	return ownNamespace(opts.namespace)
}

// kubeFor returns the verb's client, nil for a list.
func kubeFor(verb contract.Verb, opts options) (kubernetes.Interface, error) {
	if verb == contract.List {
		return nil, nil
	}
	return connectKube(opts.kubeconfig)
}

// ownNamespace returns the pod's namespace. A pod without a ServiceAccount token has no file with
// it, and could not create a PV either.
func ownNamespace(flag string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	data, err := os.ReadFile(namespaceFile)
	if err != nil {
		return "", &input.Error{Code: contract.ExitConfig, Err: fmt.Errorf(
			"find the pod's namespace: %w; this image creates PVs and Secrets itself, so its config needs a"+
				" service-account-name and no write-pv: dispatcher", err)}
	}
	return strings.TrimSpace(string(data)), nil
}

func connectKube(kubeconfig string) (kubernetes.Interface, error) {
	config, err := kubeConfig(kubeconfig)
	if err != nil {
		return nil, &input.Error{Code: contract.ExitConfig, Err: fmt.Errorf("find the Kubernetes API: %w", err)}
	}
	config.Timeout, config.QPS, config.Burst = kubeTimeout, kubeRate, kubeBurst
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, &input.Error{Code: contract.ExitConfig, Err: fmt.Errorf("prepare requests to Kubernetes: %w", err)}
	}
	return kube, nil
}

func kubeConfig(kubeconfig string) (config *rest.Config, err error) {
	if kubeconfig == "" {
		config, err = rest.InClusterConfig()
	} else {
		config, err = clientcmd.BuildConfigFromFlags("", kubeconfig)
	}
	// HTTPS_PROXY, by which an administrator gives this process the storage's proxy, would be that of the
	// API server as well (SetTransportDefaults in apimachinery's util/net/http.go), unless NO_PROXY held
	// the address of its Service.
	if err == nil && config.Proxy == nil {
		config.Proxy = http.ProxyURL(nil)
	}
	return config, err
}

func environment() map[string]string {
	env := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		env[name] = value
	}
	return env
}

// wait pauses for d, or until the context ends.
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
