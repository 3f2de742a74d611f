package jobs_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

func annotated(key, value string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Annotations[key] = value }
}

func labelled(key, value string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Labels[key] = value }
}

func sized(size string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	}
}

func TestARequestSaysAllThatTheClaimAsksFor(t *testing.T) {
	cfg := configOf(t, "Retain", nil)
	sc := class()
	sc.MountOptions = []string{"hard"}
	c := claim(annotated("volume.kubernetes.io/selected-node", "node-1"), sized("1.5G"), func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
		c.Spec.AccessModes = append(c.Spec.AccessModes, corev1.ReadOnlyMany)
	})
	want := contract.Request{
		UID: uid, PVName: "pvc-" + uid, Namespace: "app", Name: "data", Class: "gold", Size: 1_500_000_000,
		AccessModes: []string{"ReadWriteOnce", "ReadOnlyMany"}, VolumeMode: "Block", MountOptions: []string{"hard"},
		ReclaimPolicy: "Retain", SelectedNode: "node-1", SelectedZone: "west",
		Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"team": "blue"},
		Properties: map[string]string{"use-nfs-server": "10.10.2.4", "fsType": "ext4"},
	}
	if diff := cmp.Diff(want, jobs.Request(c, sc, cfg, "west")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAFractionOfAByteIsRoundedUp(t *testing.T) {
	if got := jobs.Request(claim(sized("1073741824500m")), class(), config.Config{}, "").Size; got != 1073741825 {
		t.Errorf("size %d", got)
	}
}

func TestAnnotationsOfKubernetesAndOursStayOut(t *testing.T) {
	c := claim(
		annotated("kubectl.kubernetes.io/last-applied-configuration", "{}"), annotated("pv.kubernetes.io/bind-completed", "yes"),
		annotated(contract.AnnResult, "failed"), annotated(jobs.AnnUsername, "mallory"), annotated("meta.k8s.io/x", "y"),
		annotated("k8s.io/CloneRequest", "a/b"), annotated("example.com/kubernetes.io", "mine"))
	want := map[string]string{"team": "blue", "k8s.io/CloneRequest": "a/b", "example.com/kubernetes.io": "mine"}
	if diff := cmp.Diff(want, jobs.Request(c, class(), config.Config{}, "").Annotations); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAClaimsLabelsAndAnnotationsAreCapped(t *testing.T) {
	// [{"a":"…"},{}] has 13 bytes beside the value's.
	for length, kept := range map[int]bool{4096 - 13: true, 4096 - 12: false, 1 << 20: false} {
		c := claim(labelled("a", strings.Repeat("x", length)))
		delete(c.Labels, "app")
		c.Annotations = nil
		r := jobs.Request(c, class(), config.Config{}, "")
		if got := len(r.Labels) == 1; got != kept {
			text, _ := json.Marshal([]any{r.Labels, r.Annotations})
			t.Errorf("%d bytes: kept %v, want %v (%d bytes of JSON)", length, got, kept, len(text))
		}
	}
	over := jobs.Request(claim(annotated("a", strings.Repeat("ä", 4096)), labelled("b", "c")), class(), config.Config{}, "")
	if over.Labels != nil || over.Annotations != nil {
		t.Errorf("half of it was kept: %v", over)
	}
}

func TestTheHashIsOfWhatTheClaimAsksFor(t *testing.T) {
	cfg := configOf(t, "Retain", nil)
	hash := func(changes ...func(*corev1.PersistentVolumeClaim)) string {
		return jobs.Hash(jobs.Request(claim(changes...), class(), cfg, ""))
	}
	base := hash()
	for what, change := range map[string]func(*corev1.PersistentVolumeClaim){
		"the size":         sized("2Gi"),
		"the access modes": func(c *corev1.PersistentVolumeClaim) { c.Spec.AccessModes[0] = corev1.ReadWriteMany },
		"the volume mode":  func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) },
		"the VAC":          func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = new("fast") },
		"a label":          labelled("app", "db"),
		"an annotation":    annotated("k8s.io/CloneRequest", "a/b"),
	} {
		if hash(change) == base {
			t.Errorf("%s changes, the hash does not", what)
		}
	}
	for what, change := range map[string]func(*corev1.PersistentVolumeClaim){
		"our own result":        annotated(contract.AnnAttempts, "7"),
		"the PV controller":     annotated("volume.kubernetes.io/storage-provisioner", "x"),
		"the scheduler":         annotated("volume.kubernetes.io/selected-node", "node-2"),
		"last-applied":          annotated("kubectl.kubernetes.io/last-applied-configuration", "{}"),
		"who asked":             annotated(jobs.AnnUsername, "alice"),
		"the same mode, spelt":  func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem) },
		"the same size, spelt":  sized("1024Mi"),
		"no annotations at all": func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{"team": "blue"} },
	} {
		if hash(change) != base {
			t.Errorf("%s writes, the hash changes", what)
		}
	}
}

func TestTheClassIsPartOfTheHashButPropertiesAreTheRevisions(t *testing.T) {
	request := func(change func(*storagev1.StorageClass), keys map[string]string) contract.Request {
		sc := class()
		change(sc)
		return jobs.Request(claim(), sc, configOf(t, "Retain", keys), "zone")
	}
	base := jobs.Hash(request(func(*storagev1.StorageClass) {}, nil))
	if jobs.Hash(request(func(sc *storagev1.StorageClass) { sc.MountOptions = []string{"ro"} }, nil)) == base {
		t.Error("the class's mount options change, the hash does not")
	}
	where := request(func(*storagev1.StorageClass) {}, nil)
	where.SelectedTopology = map[string]string{corev1.LabelTopologyZone: "west"}
	if jobs.Hash(where) != base {
		t.Error("the node's labels change the hash")
	}
	if jobs.Hash(request(func(sc *storagev1.StorageClass) { sc.AllowedTopologies = []corev1.TopologySelectorTerm{{}} }, nil)) == base {
		t.Error("the class's topologies change, the hash does not")
	}
	// They are in the revision's name, which a retry compares as well.
	if jobs.Hash(request(func(*storagev1.StorageClass) {}, map[string]string{"zone": "west"})) != base {
		t.Error("a property changes the hash")
	}
}

func TestARequestIsRebuiltFromItsPV(t *testing.T) {
	cfg := configOf(t, "Delete", nil)
	pv := realPV(t)
	want := contract.Request{
		UID: uid, PVName: "pvc-" + uid, Namespace: "app", Name: "data", Class: "gold", Size: 1 << 30,
		AccessModes: []string{"ReadWriteOnce"}, VolumeMode: "Filesystem", ReclaimPolicy: "Delete", SelectedNode: "node-1", Properties: cfg.Properties,
	}
	if diff := cmp.Diff(want, jobs.RequestOf(pv, cfg)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// A populator re-points the claimRef: the volume's own UID is the annotation's.
	pv.Spec.ClaimRef.UID, pv.Spec.ClaimRef.Name = "another", "target"
	if got := jobs.RequestOf(pv, cfg); got.UID != uid || got.Name != "target" {
		t.Errorf("got %s, %s", got.UID, got.Name)
	}
	pv.Spec.ClaimRef = nil
	if got := jobs.RequestOf(pv, cfg); got.UID != uid || got.Name != "" {
		t.Errorf("without a claimRef: %+v", got)
	}
}

func TestProofNeedsTheUIDAndAClaimRef(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.PersistentVolume)
		word   string
	}{
		"as the skeleton has it":  {func(*corev1.PersistentVolume) {}, ""},
		"bound to another by now": {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef.UID = "another" }, ""},
		"no UID":                  {func(pv *corev1.PersistentVolume) { delete(pv.Annotations, contract.AnnClaimUID) }, contract.AnnClaimUID},
		"another's UID":           {func(pv *corev1.PersistentVolume) { pv.Annotations[contract.AnnClaimUID] = "x" }, contract.AnnClaimUID},
		"no claimRef":             {func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil }, "any claim could take it"},
	} {
		pv := realPV(t)
		test.change(pv)
		got := jobs.Proof(pv, uid)
		if (got == "") != (test.word == "") || !strings.Contains(got, test.word) {
			t.Errorf("%s: %q, want %q in it", name, got, test.word)
		}
	}
}
