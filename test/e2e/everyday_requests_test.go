//go:build e2e && everyday

package e2e

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// sized sets the size that a claim requests.
func sized(size string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse(size)
	}
}

// Sizes with fractions, of powers of ten, with exponents, and at both ends of what can be requested.
func TestAVolumeHasAtLeastTheSizeThatItsClaimRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "sizes")
	class, _ := w.service(scripted(deletes+"[ $FLEX_SIZE -gt 0 ]\n"+offer, nil))
	claims := map[string]*corev1.PersistentVolumeClaim{}
	for i, size := range []string{"1.5Gi", "1500M", "1e9", "11362347344", "1", "1500m", "100Mi", "7Ei", "20Ei"} {
		claims[size] = w.claim(class, fmt.Sprintf("size-%d", i), sized(size))
	}
	onCinder := w.claim(cinderClass, "cinder", sized("1500M"))
	for size, claim := range claims {
		pv := w.bound(claim)
		if has := pv.Spec.Capacity.Storage(); has.Cmp(resource.MustParse(size)) < 0 {
			t.Errorf("the volume of a claim of %s has %s", size, has)
		}
		equal(t, "attempts of "+size, len(w.jobs(claim, "provision")), 1)
	}
	w.bound(onCinder)
	equal(t, "GiB in Cinder", w.onlyVolume(onCinder).Size, 2)
}

// A namespace of 63 characters and a claim of 253: no label can have such a value, and no name may
// be longer, also not that of an event.
func TestAClaimWithTheLongestNamesIsServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, strings.Repeat("n", 53))
	equal(t, "characters of the namespace", len(w.ns), 63)
	class, _ := w.service(scripted(deletes+`[ "$FLEX_CLAIM_NAME" != bad ]`+"\n"+offer, nil))
	long := strings.Repeat("c", 253)
	for _, claim := range []*corev1.PersistentVolumeClaim{w.claim(class, long), w.claim(cinderClass, strings.Repeat("d", 253))} {
		w.bound(claim)
		w.event(claim, "ProvisioningSucceeded")
		w.deleteClaim(claim)
		w.vanished(claim)
	}
}

// The kubelet would expand $(FLEX_SIZE), and a shell would end a word at a quote.
func TestTextsOfAClassReachImageAndPVUnchanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "texts")
	const text = "$(FLEX_SIZE) $$ \"double\" 'single' `date` ünïcödé ☃ \\ \t two\nlines "
	script := fmt.Sprintf(`[ "$(printf %%s "$FLEX_MOTTO_OF_THE_CLASS" | base64 | tr -d '\n')" = %s ] || { echo "claim: got $FLEX_MOTTO_OF_THE_CLASS"; exit 65; }`+"\n",
		base64.StdEncoding.EncodeToString([]byte(text)))
	options := []string{"nfsvers=4.1", `context="a:b,c"`, "x=$(y)"}
	class, _ := w.service(scripted(deletes+script+offer, nil), parameter("motto.of-the/class", text), parameter("empty", ""),
		func(class *storagev1.StorageClass) { class.MountOptions = options })
	claim := w.claim(class, "data", func(claim *corev1.PersistentVolumeClaim) {
		claim.Labels = map[string]string{"app.kubernetes.io/instance": "gitops"}
		claim.Annotations = map[string]string{"note": text}
	})
	pv := w.bound(claim)
	equal(t, "mount options of the PV", strings.Join(pv.Spec.MountOptions, " "), strings.Join(options, " "))
	equal(t, "the PV has the label by which GitOps tools prune", pv.Labels["app.kubernetes.io/instance"], "")
	equal(t, "the Job has it", w.onlyJob(claim, "provision").Labels["app.kubernetes.io/instance"], "")
}

// The storage decides about access modes. The PV has those that the claim requests, and is bound.
func TestAClaimGetsTheAccessModesThatItRequests(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "modes")
	class, _ := w.service(scripted(deletes+offer, nil))
	all := [][]corev1.PersistentVolumeAccessMode{
		{corev1.ReadWriteMany},
		{corev1.ReadOnlyMany},
		{corev1.ReadWriteOncePod},
		{corev1.ReadWriteOnce, corev1.ReadOnlyMany, corev1.ReadWriteMany},
	}
	var claims []*corev1.PersistentVolumeClaim
	for i, modes := range all {
		claims = append(claims, w.claim(class, fmt.Sprintf("modes-%d", i), func(claim *corev1.PersistentVolumeClaim) { claim.Spec.AccessModes = modes }))
	}
	for i, claim := range claims {
		if got := w.bound(claim).Spec.AccessModes; !slices.Equal(got, all[i]) {
			t.Errorf("the PV has %v, and its claim requests %v", got, all[i])
		}
	}
}

// ofSource makes a claim of something that is to be its content.
func ofSource(group, kind string) func(*corev1.PersistentVolumeClaim) {
	return func(claim *corev1.PersistentVolumeClaim) {
		claim.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: &group, Kind: kind, Name: "source"}
	}
}

// What no new volume can satisfy gets no volume, and least of all an empty one.
func TestAClaimThatNoNewVolumeSatisfiesGetsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "asks")
	class, _ := w.service(scripted(deletes+offer, nil))
	tests := map[string]struct {
		change func(*corev1.PersistentVolumeClaim)
		reason string
	}{
		"selector": {func(c *corev1.PersistentVolumeClaim) {
			c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"disk": "red"}}
		}, "SelectorNotSupported"},
		"snapshot":   {ofSource("snapshot.storage.k8s.io", "VolumeSnapshot"), "SnapshotNotSupported"},
		"claim":      {ofSource("", "PersistentVolumeClaim"), "DataSourceNotSupported"},
		"attributes": {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeAttributesClassName = new("fast") }, "AttributesClassNotSupported"},
		"populator":  {ofSource("populator.example", "Backup"), ""},
		"name":       {func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "no-such-pv" }, ""},
	}
	claims := map[string]*corev1.PersistentVolumeClaim{}
	for name, tt := range tests {
		claims[name] = w.claim(class, name, tt.change)
	}
	time.Sleep(5 * time.Second)
	for name, claim := range claims {
		if reason := tests[name].reason; reason != "" {
			w.eventWithin(toBind, claim, reason)
		}
		equal(t, "Jobs of "+name, len(w.jobs(claim, "")), 0)
		equal(t, "the phase of "+name, w.look(claim).Status.Phase, corev1.ClaimPending)
	}
}

// An administrator has made a PV that fits. Kubernetes binds the claim to that one, and nothing is
// provisioned beside it.
func TestAClaimTakesAPVThatStandsReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready")
	class, _ := w.service(scripted(deletes+offer, nil))
	w.madePV(somePV(w.ns, class))
	claim := w.claim(class, "data")
	w.eventually(toBind, "the claim to be bound", func(ctx context.Context) error { return isBound(ctx, claim) })
	equal(t, "its PV", w.look(claim).Spec.VolumeName, w.ns)
	w.noJob(claim, 5*time.Second)
}

// An expansion is refused with its reason where the image cannot expand, and where the class no
// longer lets volumes grow. A size of a power of ten is reached, and not rounded away.
func TestAnExpansionSaysWhyItIsNotDone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "expands")
	class, _ := w.service(scripted(deletes+offer, nil), expandable)
	cannot := w.claim(class, "cannot")
	w.bound(cannot)
	w.ask(cannot, "2Gi")
	w.event(cannot, "ExpansionNotSupported", "does not list expand")

	other := newWorld(t, "grows")
	class, _ = other.service(scripted(deletes+grows+offer, map[string]string{"verbs": expandVerbs}), expandable)
	claim := other.claim(class, "data", sized("1500M"))
	other.bound(claim)
	other.ask(claim, "2500M")
	other.grown(claim, `has 2500M allocated 2500M "" []`)
	equal(t, "the PV's capacity", other.capacity(claim), "2500M")
	no := []byte(`{"allowVolumeExpansion":false}`)
	_, err := kube.StorageV1().StorageClasses().Patch(w.ctx(), class, types.MergePatchType, no, metav1.PatchOptions{})
	w.must(err, "let the class's volumes grow no more")
	_, err = kube.CoreV1().PersistentVolumeClaims(other.ns).Patch(w.ctx(), claim.Name, types.MergePatchType,
		[]byte(`{"spec":{"resources":{"requests":{"storage":"3G"}}}}`), metav1.PatchOptions{})
	if err == nil {
		t.Error("the API server lets the claim request more")
	}
}

// A claim may be older than its class, or have no class until one becomes the cluster's default. Of
// two default classes Kubernetes takes the newer one. No other test finds a default class.
func TestAClaimIsServedOnceItHasAClass(t *testing.T) { //nolint:paralleltest // it makes a default class
	w := newWorld(t, "default")
	early := w.claim(w.ns, "early")
	none := w.claim("", "none", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = nil })
	static := w.claim("", "static")
	isDefault := func(class *storagev1.StorageClass) {
		class.Annotations = map[string]string{"storageclass.kubernetes.io/is-default-class": "true"}
	}
	w.class(w.ns+"-other", isDefault, func(class *storagev1.StorageClass) { class.Provisioner = "other.example.com" })
	time.Sleep(1100 * time.Millisecond) // the newer class is the one of a later second
	w.service(scripted(deletes+offer, nil), isDefault)
	w.bound(early)
	w.bound(none)
	w.bound(w.claim("", "late", func(claim *corev1.PersistentVolumeClaim) { claim.Spec.StorageClassName = nil }))
	w.noJob(static, 2*time.Second)
}

// A claim from a backup of another cluster has the annotations that another provisioner, the
// scheduler there, and a dispatcher there have written.
func TestAClaimFromABackupIsServedWhateverItsAnnotationsSay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "restored")
	restored := func(claim *corev1.PersistentVolumeClaim) {
		claim.Annotations = map[string]string{
			"volume.kubernetes.io/storage-provisioner": "driver.longhorn.io", "volume.beta.kubernetes.io/storage-provisioner": "driver.longhorn.io",
			annSelectedNode: "node-of-another-cluster", "flex-provisioner.io/result": "failed", "flex-provisioner.io/attempts": "7",
			"flex-provisioner.io/exit-code": "78", "flex-provisioner.io/provision-ts": "2020-01-01T00:00:00Z", "k8s.io/CloneOf": "elsewhere",
		}
	}
	class, _ := w.service(scripted(deletes+offer, nil))
	immediate := w.claim(class, "immediate", restored)
	onNode := w.claim(directoryClass, "on-a-node", restored)
	w.pod(shell("consumer", "node2", "echo it is here", onNode))
	w.bound(immediate)
	equal(t, "attempts", w.look(immediate).Annotations["flex-provisioner.io/attempts"], "1")
	equal(t, "what the consumer said", w.output("consumer"), "it is here\n")
	w.bound(onNode)
	w.deletePods("consumer")
}
