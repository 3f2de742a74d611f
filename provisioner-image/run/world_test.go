package run_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/pv"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/run"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

const (
	uid       = "8d5a6f3c-1f0e-4c11-9a55-0d8f6a3c1b2e"
	pvName    = "pvc-" + uid
	namespace = "flex-provisioner"
)

// world is a fake Cinder and a fake Kubernetes, with one gate through which every request to either
// passes.
type world struct {
	cinder *cindertest.Server
	kube   *fake.Clientset
	// api is the method of exporting volumes.
	api volume.Method
	// also are further properties of every request.
	also map[string]string
	// cephKey comes from the config's Secret.
	cephKey string
	// timeout of a request to Cinder; none without it.
	timeout time.Duration
	// waits are the pauses that Cinder asked for.
	waits []time.Duration
	// sent are the requests to Cinder.
	sent sent
	// printed is everything that was logged and reported.
	printed bytes.Buffer

	mu       sync.Mutex
	requests int
	// gate decides over the n-th request, counted from 1. Nil lets all pass.
	gate func(n int) cindertest.Fate
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{cinder: cindertest.New(), kube: fake.NewClientset(), api: cinder.Reserve}
	t.Cleanup(w.cinder.Close)
	w.sent.transport.DisableKeepAlives = true
	w.cinder.Gate = func(*http.Request) cindertest.Fate { return w.next() }
	serve := w.kube.ReactionChain
	w.kube.ReactionChain = []kubetesting.Reactor{&kubetesting.SimpleReactor{
		Verb: "*", Resource: "*",
		Reaction: func(a kubetesting.Action) (bool, runtime.Object, error) { return w.react(a, serve) },
	}}
	return w
}

func (w *world) next() cindertest.Fate {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests++
	if w.gate == nil {
		return cindertest.Answer
	}
	return w.gate(w.requests)
}

// guard sets the gate, counts from 1 again, and returns what was counted before.
func (w *world) guard(gate func(n int) cindertest.Fate) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	counted := w.requests
	w.requests, w.gate = 0, gate
	return counted
}

// react answers for Kubernetes, behind the gate.
func (w *world) react(a kubetesting.Action, serve []kubetesting.Reactor) (bool, runtime.Object, error) {
	fate := w.next()
	if fate == cindertest.DropRequest {
		return true, nil, errors.New("connection lost")
	}
	for _, r := range serve {
		if !r.Handles(a) {
			continue
		}
		handled, object, err := r.React(a)
		if fate == cindertest.DropAnswer {
			return true, nil, errors.New("connection lost")
		}
		if handled {
			return true, object, err
		}
	}
	return false, nil, nil
}

// request returns the claim's request. edit may change it.
func (w *world) request(verb contract.Verb, edit func(*contract.Request)) contract.Requests {
	r := contract.Request{
		UID: uid, PVName: pvName, Namespace: "shop", Name: "data", Class: "silver", Size: 3<<30 - 1,
		Properties: map[string]string{"type": cindertest.TypePlain, "fsType": "xfs", "attach-api": string(w.api)},
	}
	maps.Copy(r.Properties, w.also)
	if edit != nil {
		edit(&r)
	}
	return contract.Requests{Version: contract.Version, Verb: verb, Items: []contract.Request{r}}
}

func skeleton(modes ...corev1.PersistentVolumeAccessMode) *corev1.PersistentVolume {
	if len(modes) == 0 {
		modes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	}
	return &corev1.PersistentVolume{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolume"},
		ObjectMeta: metav1.ObjectMeta{
			Name:        pvName,
			Annotations: map[string]string{contract.AnnClaimUID: uid},
			Finalizers:  []string{contract.FinalizerStorage},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:         corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")},
			AccessModes:      modes,
			StorageClassName: "silver",
			ClaimRef:         &corev1.ObjectReference{Namespace: "shop", Name: "data", UID: uid},
			VolumeMode:       new(corev1.PersistentVolumeFilesystem),
		},
	}
}

// run executes a run as the command does. The object is what pv.json holds.
func (w *world) run(t *testing.T, requests contract.Requests, object any) run.Result {
	t.Helper()
	tasks, err := input.Read(w.input(t, requests, object))
	if err != nil {
		tasks = []input.Task{{}}
	}
	ended := run.End(tasks, err)
	if good := slices.IndexFunc(ended, func(one run.Ended) bool { return one.Err == nil }); good >= 0 {
		ended = w.runner(t, tasks[good]).RunAll(t.Context(), tasks)
	}
	result := run.JudgeAll(ended)
	w.printed.WriteString(result.Message)
	return result
}

func (w *world) runner(t *testing.T, task input.Task) *run.Runner {
	t.Helper()
	storage, err := cinder.Connect(t.Context(), task.Login, http.Client{Transport: &w.sent, Timeout: w.timeout}, w.wait)
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewTextHandler(&w.printed, nil))
	return run.New(volume.NewKeeper(cinder.NewBackend(storage, atOnce), atOnce), pv.NewStore(w.kube), log, time.Now)
}

func (w *world) input(t *testing.T, requests contract.Requests, object any) input.Sources {
	t.Helper()
	request, err := requests.Encode()
	if err != nil {
		t.Fatal(err)
	}
	pvText, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	return input.Sources{
		Verb:      requests.Verb,
		Namespace: namespace,
		Methods:   cinder.Methods(),
		Dir:       fstest.MapFS{"request.json": {Data: []byte(request)}, "pv.json": {Data: pvText}},
		Env:       map[string]string{"OS_CINDER_ENDPOINT": w.cinder.Endpoint(), "OS_PROJECT_NAME": "admin", "CEPH_KEY": w.cephKey},
	}
}

func atOnce(ctx context.Context, _ time.Duration) error { return ctx.Err() }

// wait records a pause that Cinder asked for.
func (w *world) wait(ctx context.Context, d time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waits = append(w.waits, d)
	return ctx.Err()
}

func (w *world) provision(t *testing.T) run.Result {
	t.Helper()
	return w.run(t, w.request(contract.Provision, nil), skeleton())
}

// remove deletes what the PV records, or undoes if there is no PV.
func (w *world) remove(t *testing.T) run.Result {
	t.Helper()
	object, undo := skeleton(), true
	if all := w.pvs(t); len(all) == 1 {
		object, undo = &all[0], false
	}
	return w.run(t, w.request(contract.Delete, func(r *contract.Request) { r.Undo = undo }), object)
}

// pvs and secrets bypass the gate.
func (w *world) pvs(t *testing.T) []corev1.PersistentVolume {
	t.Helper()
	list, err := w.kube.Tracker().List(corev1.SchemeGroupVersion.WithResource("persistentvolumes"),
		corev1.SchemeGroupVersion.WithKind("PersistentVolume"), "")
	if err != nil {
		t.Fatal(err)
	}
	return list.(*corev1.PersistentVolumeList).Items
}

func (w *world) secrets(t *testing.T) []corev1.Secret {
	t.Helper()
	list, err := w.kube.Tracker().List(corev1.SchemeGroupVersion.WithResource("secrets"),
		corev1.SchemeGroupVersion.WithKind("Secret"), "")
	if err != nil {
		t.Fatal(err)
	}
	return list.(*corev1.SecretList).Items
}
