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
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

func labelled(key, value string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) { c.Labels[key] = value }
}

func sized(size string) func(*corev1.PersistentVolumeClaim) {
	return func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	}
}

func TestRequestSaysEverythingThatTheClaimAsksFor(t *testing.T) {
	cfg := fixture.Config(t, "Retain", nil)
	sc := fixture.Class()
	sc.MountOptions = []string{"hard"}
	c := fixture.Claim(fixture.Annotated("volume.kubernetes.io/selected-node", "node-1"), sized("1.5G"), func(c *corev1.PersistentVolumeClaim) {
		c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock)
		c.Spec.AccessModes = append(c.Spec.AccessModes, corev1.ReadOnlyMany)
	})
	want := contract.Request{
		UID: fixture.UID, PVName: "pvc-" + fixture.UID, Namespace: "app", Name: "data", Class: "gold", Size: 1_500_000_000,
		AccessModes: []string{"ReadWriteOnce", "ReadOnlyMany"}, VolumeMode: "Block", MountOptions: []string{"hard"},
		ReclaimPolicy: "Retain", // of the annotation selected-node it says nothing: a user may have written it
		Labels:        map[string]string{"app": "web"}, Annotations: map[string]string{"team": "blue"},
		Properties: map[string]string{"use-nfs-server": "10.10.2.4", "fsType": "ext4"},
	}
	if diff := cmp.Diff(want, jobs.Request(c, sc, cfg)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFractionOfAByteIsRoundedUp(t *testing.T) {
	if got := jobs.Request(fixture.Claim(sized("1073741824500m")), fixture.Class(), config.Config{}).Size; got != 1073741825 {
		t.Errorf("size %d", got)
	}
}

func TestAnnotationsOfKubernetesAndTheDispatcherAreRemoved(t *testing.T) {
	c := fixture.Claim(
		fixture.Annotated("kubectl.kubernetes.io/last-applied-configuration", "{}"), fixture.Annotated("pv.kubernetes.io/bind-completed", "yes"),
		fixture.Annotated(contract.AnnResult, "failed"), fixture.Annotated(jobs.AnnUsername, "mallory"), fixture.Annotated("meta.k8s.io/x", "y"),
		fixture.Annotated("k8s.io/CloneRequest", "a/b"), fixture.Annotated("example.com/kubernetes.io", "mine"))
	want := map[string]string{"team": "blue", "k8s.io/CloneRequest": "a/b", "example.com/kubernetes.io": "mine"}
	if diff := cmp.Diff(want, jobs.Request(c, fixture.Class(), config.Config{}).Annotations); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLabelsAndAnnotationsOfAClaimAreCapped(t *testing.T) {
	// [{"a":"…"},{}] has 13 bytes beside the value's.
	for length, kept := range map[int]bool{4096 - 13: true, 4096 - 12: false, 1 << 20: false} {
		c := fixture.Claim(labelled("a", strings.Repeat("x", length)))
		delete(c.Labels, "app")
		c.Annotations = nil
		r := jobs.Request(c, fixture.Class(), config.Config{})
		if got := len(r.Labels) == 1; got != kept {
			text, _ := json.Marshal([]any{r.Labels, r.Annotations})
			t.Errorf("%d bytes: kept %v, want %v (%d bytes of JSON)", length, got, kept, len(text))
		}
	}
	over := jobs.Request(fixture.Claim(fixture.Annotated("a", strings.Repeat("ä", 4096)), labelled("b", "c")), fixture.Class(), config.Config{})
	if over.Labels != nil || over.Annotations != nil {
		t.Errorf("half of it was kept: %v", over)
	}
}

func TestHashIsOfWhatTheClaimAsksFor(t *testing.T) {
	cfg := fixture.Config(t, "Retain", nil)
	hash := func(changes ...func(*corev1.PersistentVolumeClaim)) string {
		claim := fixture.Claim(changes...)
		return jobs.Hash(jobs.Request(claim, fixture.Class(), cfg), []string{"example.com/tier", "replicas"})
	}
	base := hash()
	for what, change := range map[string]func(*corev1.PersistentVolumeClaim){
		"the size":                      sized("2Gi"),
		"the access modes":              func(c *corev1.PersistentVolumeClaim) { c.Spec.AccessModes[0] = corev1.ReadWriteMany },
		"the volume mode":               func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) },
		"the VAC":                       func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = new("fast") },
		"a label of request-keys":       labelled("replicas", "3"),
		"a label of them, to nothing":   labelled("replicas", ""),
		"an annotation of request-keys": fixture.Annotated("example.com/tier", "fast"),
	} {
		if hash(change) == base {
			t.Errorf("%s changes, the hash does not", what)
		}
	}
	for what, change := range map[string]func(*corev1.PersistentVolumeClaim){
		"an operator":           fixture.Annotated("operator.example.com/last-seen", "12:00"),
		"a label of no request": labelled("app", "db"),
		"our own result":        fixture.Annotated(contract.AnnAttempts, "7"),
		"the PV controller":     fixture.Annotated("volume.kubernetes.io/storage-provisioner", "x"),
		"the scheduler":         fixture.Annotated("volume.kubernetes.io/selected-node", "node-2"),
		"last-applied":          fixture.Annotated("kubectl.kubernetes.io/last-applied-configuration", "{}"),
		"who asked":             fixture.Annotated(jobs.AnnUsername, "alice"),
		"the same mode, spelt":  func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeFilesystem) },
		"the same size, spelt":  sized("1024Mi"),
		"no annotations at all": func(c *corev1.PersistentVolumeClaim) { c.Annotations = map[string]string{"team": "blue"} },
	} {
		if hash(change) != base {
			t.Errorf("%s writes, the hash changes", what)
		}
	}
}

func TestHashHasTheClassAndNotTheProperties(t *testing.T) {
	request := func(change func(*storagev1.StorageClass), keys map[string]string) contract.Request {
		sc := fixture.Class()
		change(sc)
		return jobs.Request(fixture.Claim(), sc, fixture.Config(t, "Retain", keys))
	}
	hash := func(r contract.Request) string { return jobs.Hash(r, nil) }
	base := hash(request(func(*storagev1.StorageClass) {}, nil))
	if hash(request(func(sc *storagev1.StorageClass) { sc.MountOptions = []string{"ro"} }, nil)) == base {
		t.Error("the class's mount options change, the hash does not")
	}
	where := request(func(*storagev1.StorageClass) {}, nil)
	where.SelectedTopology = map[string]string{corev1.LabelTopologyZone: "west"}
	if hash(where) != base {
		t.Error("the node's labels change the hash")
	}
	if hash(request(func(sc *storagev1.StorageClass) { sc.AllowedTopologies = []corev1.TopologySelectorTerm{{}} }, nil)) == base {
		t.Error("the class's topologies change, the hash does not")
	}
	// Properties change the revision's name, which a retry compares as well.
	if hash(request(func(*storagev1.StorageClass) {}, map[string]string{"zone": "west"})) != base {
		t.Error("a property changes the hash")
	}
}

// The claims of a batch would have a hash each on their Job, which takes the API server's time at
// each write.
func TestClaimsThatAskForTheSameHaveOneHash(t *testing.T) {
	hash := func(options ...func(*corev1.PersistentVolumeClaim)) string {
		claim := fixture.Claim(options...)
		return jobs.Hash(jobs.Request(claim, fixture.Class(), config.Config{}), nil)
	}
	other := func(claim *corev1.PersistentVolumeClaim) {
		claim.Name, claim.Namespace, claim.UID = "other", "elsewhere", "u2"
	}
	if one, two := hash(), hash(other); one != two {
		t.Errorf("the claims have the hashes %s and %s", one, two)
	}
}

func TestHashesOfDifferentVersionsAreOfTheSameRequest(t *testing.T) {
	claim := fixture.Claim()
	today := jobs.Hash(jobs.Request(claim, fixture.Class(), config.Config{}), nil)
	if !strings.HasPrefix(today, "3-") {
		t.Errorf("the hash %s has another version: is there a test of the upgrade?", today)
	}
	for _, tt := range []struct {
		a, b string
		same bool
	}{
		{today, today, true},
		{today, "3-0000000000000000", false},
		{today, "b2c4a0f1e3d5a697", true}, // of the first version, which no prefix tells
		{"b2c4a0f1e3d5a697", today, true},
		{today, "2-0000000000000000", true},
		{today, "", true},
		{"1073741824", "2147483648", false}, // sizes, of expands
	} {
		if got := jobs.SameRequest(tt.a, tt.b); got != tt.same {
			t.Errorf("%q and %q: same request %v, want %v", tt.a, tt.b, got, tt.same)
		}
	}
}

func TestRequestIsRebuiltFromItsPV(t *testing.T) {
	cfg := fixture.Config(t, "Delete", nil)
	pv := fixture.PV(t)
	want := contract.Request{
		UID: fixture.UID, PVName: "pvc-" + fixture.UID, Namespace: "app", Name: "data", Class: "gold", Size: 1 << 30,
		AccessModes: []string{"ReadWriteOnce"}, VolumeMode: "Filesystem", ReclaimPolicy: "Delete", SelectedNode: "node-1", Properties: cfg.Properties,
	}
	if diff := cmp.Diff(want, jobs.RequestOf(pv, cfg)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// A populator changes the claimRef, so the volume's own UID is the one in the annotation.
	pv.Spec.ClaimRef.UID, pv.Spec.ClaimRef.Name = "another", "target"
	if got := jobs.RequestOf(pv, cfg); got.UID != fixture.UID || got.Name != "target" {
		t.Errorf("got %s, %s", got.UID, got.Name)
	}
	pv.Spec.ClaimRef = nil
	if got := jobs.RequestOf(pv, cfg); got.UID != fixture.UID || got.Name != "" {
		t.Errorf("without a claimRef: %+v", got)
	}
}
