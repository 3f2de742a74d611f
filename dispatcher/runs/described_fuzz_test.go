package runs_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

// Whatever a container says of its PV, the PV is the request's but for source, nodes and a larger
// capacity, is in no directory of a node but its own, and can be written as JSON and read back as
// the same.
func FuzzDescribedPV(f *testing.F) {
	const own = "/srv/flex/pvc-" + fixture.UID
	f.Add(`{"source": {"nfs": {"server": "filer", "path": "/a"}}, "capacity": "2Gi"}`)
	f.Add(`{"source": {"local": {"path": "` + own + `"}}, "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["node-1"]}]}]}}}`)
	f.Add(`{"source": {"local": {"path": "` + own + `/../other"}}}`)
	f.Add(`{"source": {"hostPath": {"path": "` + own + `", "type": "DirectoryOrCreate"}}, "capacity": 1073741824}`)
	f.Add(`{"source": {"hostPath": {"path": "` + own + `", "type": "Socket"}}}`)
	f.Add(`{"source": {"hostPath": {"path": "/"}}, "capacity": "1e-9"}`)
	f.Add(`{"source": {"nfs": {"server": "filer", "path": "/a"}}, "capacity": "512Mi"}`)
	f.Add(`{"source": {"nfs": {"server": "filer", "path": "/a"}}, "capacity": "1e-100"}`)
	f.Add(`{"source": {"nfs": {"server": "filer", "path": "/a"}}, "capacity": 1e100}`)
	f.Add(`{"source": {"csi": {"driver": "d", "volumeHandle": "h", "volumeAttributes": {"a": "b"}}}, "capacity": "512Mi", "metadata": {"name": "other"}}`)
	f.Fuzz(func(t *testing.T, description string) {
		described, err := runs.ReadDescribedPV(description)
		if err != nil {
			return
		}
		for _, allowed := range []jobs.Allowance{{}, {HostPaths: []string{"/srv/flex"}}} {
			asked := askedPV()
			pv, err := described.Complete(asked, allowed)
			if diff := cmp.Diff(askedPV(), asked); diff != "" {
				t.Errorf("%q changes the request's PV:\n%s", description, diff)
			}
			if err == nil {
				mustBeAsAsked(t, pv)
				mustBeOnNoNode(t, pv, allowed, own)
				mustBeReadBack(t, pv)
				mustBePrintable(t, pv)
			}
		}
	})
}

// askedPV is the PV of a request.
func askedPV() *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name: "pvc-" + fixture.UID, Finalizers: []string{contract.FinalizerStorage}, Annotations: map[string]string{contract.AnnClaimUID: fixture.UID},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(1<<30, resource.BinarySI)},
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: "gold", PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			ClaimRef: &corev1.ObjectReference{Namespace: "app", Name: "data", UID: fixture.UID},
		},
	}
}

// mustBeAsAsked checks everything of a PV that is not its container's to say.
func mustBeAsAsked(t *testing.T, pv *corev1.PersistentVolume) {
	t.Helper()
	asked, rest := askedPV(), pv.DeepCopy()
	if size := pv.Spec.Capacity.Storage(); size.Cmp(*asked.Spec.Capacity.Storage()) < 0 || len(pv.Spec.Capacity) != 1 {
		t.Errorf("the PV has the capacity %v", pv.Spec.Capacity)
	}
	rest.Spec.PersistentVolumeSource, rest.Spec.NodeAffinity, rest.Spec.Capacity = corev1.PersistentVolumeSource{}, nil, asked.Spec.Capacity
	if diff := cmp.Diff(asked, rest); diff != "" {
		t.Errorf("the PV is another than the one that was asked for:\n%s", diff)
	}
}

// mustBeOnNoNode checks that a volume which is a directory of a node is the one that is its own
// there, and only where that is allowed.
func mustBeOnNoNode(t *testing.T, pv *corev1.PersistentVolume, allowed jobs.Allowance, own string) {
	t.Helper()
	mayBe := func(path string) bool { return len(allowed.HostPaths) > 0 && path == own }
	if local := pv.Spec.Local; local != nil && !mayBe(local.Path) {
		t.Errorf("with %v the PV is in %q of a node", allowed.HostPaths, local.Path)
	}
	ofHost, types := pv.Spec.HostPath, []corev1.HostPathType{corev1.HostPathDirectory, corev1.HostPathDirectoryOrCreate}
	if ofHost != nil && (!mayBe(ofHost.Path) || ofHost.Type == nil || !slices.Contains(types, *ofHost.Type)) {
		t.Errorf("with %v the PV is %+v of a node", allowed.HostPaths, ofHost)
	}
}

// mustBePrintable checks that no text of a PV has control characters. In JSON they are escapes.
func mustBePrintable(t *testing.T, pv *corev1.PersistentVolume) {
	t.Helper()
	text, err := json.Marshal(pv.Spec)
	if err != nil {
		t.Fatal(err)
	}
	if found := regexp.MustCompile(`[^\\](\\\\)*\\(u00[01]|[bfnrt])|[\x7f-\x{9f}]`).FindString(string(text)); found != "" {
		t.Errorf("%s has the control character %q", text, found)
	}
}

// mustBeReadBack checks that a PV means the same to the API server.
func mustBeReadBack(t *testing.T, pv *corev1.PersistentVolume) {
	t.Helper()
	text, err := json.Marshal(pv)
	if err != nil {
		t.Fatal(err)
	}
	var again corev1.PersistentVolume
	if err := json.Unmarshal(text, &again); err != nil {
		t.Fatalf("%s cannot be read back: %v", text, err)
	}
	if !equality.Semantic.DeepEqual(pv, &again) {
		t.Errorf("%s is read back as something else:\n%s", text, cmp.Diff(pv, &again))
	}
}
