// Package kube is the API server of the tests of recipes, and what they ask of its objects.
package kube

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/try/kubeapi"
)

// Namespace is that of the pods.
const Namespace = "flex-provisioner"

// Server is the API server of a test.
type Server struct {
	URL     string
	t       *testing.T
	cluster *fake.Clientset
}

// Object is one of Kubernetes.
type Object map[string]any

// At returns what is at a path.
func (o Object) At(keys ...string) any {
	var in any = map[string]any(o)
	for _, key := range keys {
		fields, _ := in.(map[string]any)
		in = fields[key]
	}
	return in
}

// New returns a server, and writes what a pod has to use it into the directory of its account.
func New(t *testing.T, account string) *Server {
	t.Helper()
	cluster := fake.NewClientset()
	api, err := kubeapi.New(cluster, Namespace)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(api.Close)
	for name, content := range api.Files() {
		if err := os.WriteFile(filepath.Join(account, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return &Server{URL: api.URL(), t: t, cluster: cluster}
}

// All returns the objects of a kind, by their names.
func (k *Server) All(kind string) []Object {
	k.t.Helper()
	all, err := k.cluster.Tracker().List(
		corev1.SchemeGroupVersion.WithResource(kind), kinds[kind], "")
	if err != nil {
		k.t.Fatal(err)
	}
	text, err := json.Marshal(all)
	if err != nil {
		k.t.Fatal(err)
	}
	var found struct{ Items []Object }
	if err := json.Unmarshal(text, &found); err != nil {
		k.t.Fatal(err)
	}
	slices.SortFunc(found.Items, func(a, b Object) int { return strings.Compare(a.name(), b.name()) })
	return found.Items
}

// kinds has the kind of each resource.
var kinds = map[string]schema.GroupVersionKind{
	"persistentvolumes": corev1.SchemeGroupVersion.WithKind("PersistentVolume"),
	"secrets":           corev1.SchemeGroupVersion.WithKind("Secret"),
}

func (o Object) name() string { return fmt.Sprint(o.At("metadata", "name")) }

// Forget deletes the PVs, as the dispatcher does once their volumes are deleted.
func (k *Server) Forget() {
	k.t.Helper()
	const kind = "persistentvolumes"
	for _, pv := range k.All(kind) {
		err := k.cluster.Tracker().Delete(
			corev1.SchemeGroupVersion.WithResource(kind), "", pv.name())
		if err != nil {
			k.t.Fatal(err)
		}
	}
}

// Password returns the password of a Secret for CHAP.
func Password(t *testing.T, secret Object) string {
	t.Helper()
	return Text(t, secret, "node.session.auth.password")
}

// Text returns what a Secret has for a key.
func Text(t *testing.T, secret Object, key string) string {
	t.Helper()
	text, err := base64.StdEncoding.DecodeString(fmt.Sprint(secret.At("data", key)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// PVs returns the file pv.json of some requests, as far as these tests need it.
func PVs(t *testing.T, requests ...contract.Request) string {
	t.Helper()
	var items []any
	for _, r := range requests {
		items = append(items, map[string]any{
			"apiVersion": "v1", "kind": "PersistentVolume",
			"metadata": map[string]any{"name": r.PVName, "annotations": map[string]any{contract.AnnClaimUID: r.UID}},
			"spec":     map[string]any{"capacity": map[string]any{"storage": strconv.FormatInt(r.Size, 10)}, "accessModes": r.AccessModes, "volumeMode": r.VolumeMode},
		})
	}
	var all any = map[string]any{"apiVersion": "v1", "kind": "List", "items": items}
	if len(items) == 1 {
		all = items[0]
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
