package memory_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// lot is what a cluster has.
type lot struct {
	bound   int // claims with their PVs
	waiting int // claims without
	text    int // bytes of annotations of each claim
	// lists is set if the server streams no lists: its feature gate WatchList is off.
	lists bool
}

// page is a kind of objects that the server has some of.
type page struct {
	kind, version string
	n             int
	object        func(i int) any
}

// pages are the kinds of which a cluster has objects, by the path of their list.
func (l lot) pages() map[string]page {
	return map[string]page{
		"/api/v1/persistentvolumeclaims": {"PersistentVolumeClaim", "v1", l.bound + l.waiting, func(i int) any { return l.claim(i) }},
		"/api/v1/persistentvolumes":      {"PersistentVolume", "v1", l.bound, func(i int) any { return pv(i) }},
	}
}

// serve starts a server that answers every list and watch.
func serve(t *testing.T, l lot) *httptest.Server {
	t.Helper()
	pages := l.pages()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, found := pages[r.URL.Path]
		if !found {
			p = page{kind: kindOf(r.URL.Path), version: strings.TrimPrefix(strings.Join(strings.Split(r.URL.Path, "/")[2:4], "/"), "v1/")}
		}
		if strings.HasPrefix(r.URL.Path, "/api/v1/") {
			p.version = "v1"
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Query().Get("watch") != "true":
			p.list(w, r)
		case l.lists && r.URL.Query().Get("sendInitialEvents") == "true":
			w.WriteHeader(http.StatusUnprocessableEntity)
			fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`)
		default:
			p.watch(w, r)
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return server
}

// kindOf returns the kind of the objects of a list that is empty.
func kindOf(path string) string {
	for resource, kind := range map[string]string{
		"/storageclasses": "StorageClass", "/nodes": "Node", "/volumeattachments": "VolumeAttachment", "/configmaps": "ConfigMap",
		"/serviceaccounts": "ServiceAccount", "/controllerrevisions": "ControllerRevision", "/jobs": "Job", "/pods": "Pod",
	} {
		if strings.HasSuffix(path, resource) {
			return kind
		}
	}
	return "Unknown"
}

// list sends a page of the objects. Asked for any version, an API server sends all of them,
// whatever the limit is.
func (p page) list(w http.ResponseWriter, r *http.Request) {
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	first, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	next, last := "", p.n
	if limit > 0 && r.URL.Query().Get("resourceVersion") != "0" && first+limit < p.n {
		last = first + limit
		next = strconv.Itoa(last)
	}
	fmt.Fprintf(w, `{"kind":"%sList","apiVersion":%q,"metadata":{"resourceVersion":"1000000","continue":%q},"items":[`, p.kind, p.version, next)
	for i := first; i < last; i++ {
		text, err := json.Marshal(p.object(i))
		if err != nil {
			panic(err)
		}
		if i > first {
			text = append([]byte{','}, text...)
		}
		if _, err := w.Write(text); err != nil {
			return
		}
	}
	fmt.Fprint(w, "]}")
}

// watch sends every object, if they are asked for, and then nothing more.
func (p page) watch(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		for i := range p.n {
			text, err := json.Marshal(map[string]any{"type": "ADDED", "object": p.object(i)})
			if err != nil {
				panic(err)
			}
			if _, err := w.Write(append(text, '\n')); err != nil {
				return
			}
		}
		fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"1000000","annotations":{%q:"true"}}}}`+"\n",
			p.kind, p.version, metav1.InitialEventsAnnotationKey)
	}
	if flusher, flushes := w.(http.Flusher); flushes {
		flusher.Flush()
	}
	<-r.Context().Done()
}

func uidOf(i int) types.UID { return types.UID(fmt.Sprintf("6f0c3b1e-2d4a-4c8e-9a57-%012x", i)) }

// managed is what the managers of an object leave on it, about as much as on a claim of a
// StatefulSet.
func managed() []metav1.ManagedFieldsEntry {
	fields := `{"f:metadata":{"f:annotations":{".":{},"f:pv.kubernetes.io/bind-completed":{}}},"f:spec":{"f:volumeName":{},"f:resources":{"f:requests":{".":{},"f:storage":{}}}}}`
	var out []metav1.ManagedFieldsEntry
	for _, name := range []string{"kube-controller-manager", "flex-dispatcher", "kubectl"} {
		out = append(out, metav1.ManagedFieldsEntry{Manager: name, Operation: "Update", FieldsV1: metav1.NewFieldsV1(fields)})
	}
	return out
}

func (l lot) claim(i int) *corev1.PersistentVolumeClaim {
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	claim := &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{Kind: "PersistentVolumeClaim", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprint("data-mysql-", i), Namespace: fmt.Sprint("team-", i%500), UID: uidOf(i), ResourceVersion: fmt.Sprint(i + 10),
			CreationTimestamp: metav1.Now(), Finalizers: []string{"kubernetes.io/pvc-protection"}, ManagedFields: managed(),
			Labels: map[string]string{"app.kubernetes.io/name": "mysql", "app.kubernetes.io/instance": fmt.Sprint(i)},
			Annotations: map[string]string{
				"volume.kubernetes.io/storage-provisioner": contract.ProvisionerName, "flex-provisioner.io/username": "system:serviceaccount:kube-system:statefulset-controller",
				"note": fmt.Sprint(i, strings.Repeat("x", l.text)),
			},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new("gold"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeMode: new(corev1.PersistentVolumeFilesystem),
			Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimPending},
	}
	if i < l.bound {
		claim.Spec.VolumeName = contract.PVName(string(claim.UID))
		claim.Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: size, AccessModes: claim.Spec.AccessModes}
		maps.Copy(claim.Annotations, map[string]string{
			"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes", contract.AnnResult: "succeeded", contract.AnnExitCode: "0",
			contract.AnnMessage: "", contract.AnnAttempts: "1", contract.AnnProvisionTS: "2026-01-01T00:00:00Z",
		})
	}
	return claim
}

func pv(i int) *corev1.PersistentVolume {
	uid := string(uidOf(i))
	return &corev1.PersistentVolume{
		TypeMeta: metav1.TypeMeta{Kind: "PersistentVolume", APIVersion: "v1"},
		ObjectMeta: metav1.ObjectMeta{
			Name: contract.PVName(uid), UID: types.UID("pv-" + uid), ResourceVersion: fmt.Sprint(i + 10), CreationTimestamp: metav1.Now(),
			Finalizers: []string{"kubernetes.io/pv-protection", contract.FinalizerStorage}, ManagedFields: managed(),
			Annotations: map[string]string{
				contract.AnnClaimUID: uid, contract.AnnRevision: "flex-provisioner/gold-0123456789abcdef", contract.AnnProvisionedBy: contract.ProvisionerName,
			},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}, StorageClassName: "gold", PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, VolumeMode: new(corev1.PersistentVolumeFilesystem),
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Name: fmt.Sprint("data-mysql-", i), Namespace: fmt.Sprint("team-", i%500), UID: uidOf(i), ResourceVersion: "1",
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{ISCSI: &corev1.ISCSIPersistentVolumeSource{
				TargetPortal: "10.250.0.1:3260", IQN: "iqn.2010-10.org.openstack:volume-" + uid, SecretRef: &corev1.SecretReference{Name: contract.PVName(uid), Namespace: "flex-provisioner"},
			}},
		},
		Status: corev1.PersistentVolumeStatus{Phase: corev1.VolumeBound, LastPhaseTransitionTime: new(metav1.Now())},
	}
}
