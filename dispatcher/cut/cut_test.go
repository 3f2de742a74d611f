package cut

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/test/fixture"
)

const large = 250 << 10

// managed is what clients that apply objects leave on them.
var managed = []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(`{"f:x":"` + strings.Repeat("y", large) + `"}`)}}

func bound(c *corev1.PersistentVolumeClaim) {
	c.Spec.VolumeName, c.Status.Phase = contract.PVName(string(c.UID)), corev1.ClaimBound
	c.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
}

// everyKey writes a large value under every key that is read, and under others.
func everyKey(c *corev1.PersistentVolumeClaim) {
	for _, key := range slices.Concat(readOfBound, readOfUnbound, []string{jobs.AnnUsername, jobs.AnnGroups, "note", "team.kubernetes.io/note"}) {
		if key != config.AnnCut {
			c.Annotations[key] = strings.Repeat("x", large)
		}
	}
	for i := range 2000 {
		c.Labels[fmt.Sprint("label", i)] = strings.Repeat("x", 60)
	}
	c.Spec.Selector = &metav1.LabelSelector{MatchLabels: c.Labels}
	c.Spec.Resources.Requests[corev1.ResourceName("example.com/"+strings.Repeat("x", large))] = resource.MustParse("1")
	for i := range 5000 {
		c.Finalizers = append(c.Finalizers, fmt.Sprint("example.com/", i))
		c.Spec.AccessModes = append(c.Spec.AccessModes, corev1.ReadWriteOnce, corev1.ReadWriteMany)
	}
}

// longNames are the names in a spec whose length Kubernetes does not limit.
func longNames(c *corev1.PersistentVolumeClaim) {
	name := strings.Repeat("x", large)
	c.Spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: new(name), Kind: name, Name: name}
	c.Spec.DataSourceRef = &corev1.TypedObjectReference{APIGroup: new(name), Kind: name, Name: name, Namespace: new("other")}
}

func jobAndPod(t *testing.T, outcome contract.Verdict) (*batchv1.Job, *corev1.Pod) {
	t.Helper()
	cfg := fixture.Config(t, "Delete", map[string]string{"ca": strings.Repeat("y", 60<<10)})
	job := fixture.Build(t, fixture.Provision(cfg, fixture.Claim()))
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: contract.Container, Image: "localhost/gold:v1", ImageID: "sha256:00",
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 75, Message: strings.Repeat("z", 1000)}},
	}}
	job.ManagedFields, pod.ManagedFields = managed, managed
	if outcome != "" {
		fixture.Record(job, fixture.UID, func(r *jobs.Record) { r.Recorded = &jobs.Outcome{Verdict: outcome} })
		job.Finalizers = nil
	}
	return job, pod
}

// ofAnyKubelet writes as much into a pod's status as its node may.
func ofAnyKubelet(pod *corev1.Pod) *corev1.Pod {
	text := strings.Repeat("x", large)
	pod.Status.Message, pod.Status.Reason = text, text
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Reason: text, Message: text}}
	ended := &corev1.ContainerStateTerminated{Message: text, Reason: text, ContainerID: text}
	state := corev1.ContainerState{Terminated: ended, Waiting: &corev1.ContainerStateWaiting{Message: text, Reason: text}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: contract.Container, State: state, LastTerminationState: state, ContainerID: text}}
	return pod
}

// aCondition is one that the kubelet of a node writes on a claim of its pods.
func aCondition(c *corev1.PersistentVolumeClaim) {
	text := strings.Repeat("x", large)
	c.Status.Conditions = []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimConditionType(text), Reason: text, Message: text}}
}

func TestCachesKeepFewBytesOfAnObject(t *testing.T) {
	released, pod := jobAndPod(t, contract.TryAgain)
	_, lying := jobAndPod(t, "")
	account := &corev1.ServiceAccount{ObjectMeta: configMap(0).ObjectMeta}
	pv := fixture.PV(t)
	pv.ManagedFields = managed
	one := func(changes ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
		claim := fixture.Claim(changes...)
		claim.ManagedFields = managed
		return claim
	}
	note := fixture.Annotated("note", strings.Repeat("x", large))
	for name, tt := range map[string]struct {
		obj  any
		most int
	}{
		"a waiting claim":                         {one(note), 1 << 10},
		"a waiting claim, large everywhere":       {one(everyKey), 6 << 10},
		"a waiting claim with long names":         {one(longNames), 1 << 10},
		"a claim that names a long volume":        {one(longNames, func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = strings.Repeat("x", large) }), 1 << 10},
		"a bound claim":                           {one(note, bound), 1 << 10},
		"a bound claim, large everywhere":         {one(everyKey, bound), 2 << 10},
		"a pod":                                   {pod, 3 << 10},
		"a Job that is the record of no claim":    {released, 3 << 10},
		"a PV":                                    {pv, 2 << 10},
		"a ConfigMap":                             {configMap(config.MaxData - len("ca")), config.MaxData + 1<<10},
		"a ConfigMap that is too large":           {configMap(config.MaxData), 1 << 10},
		"a ServiceAccount":                        {account, 1 << 10},
		"a pod with a status as large as can be":  {ofAnyKubelet(lying), 64 << 10},
		"a claim with a condition of its kubelet": {one(aCondition), 1 << 10},
		"a claim whose creator is in many groups": {one(fixture.Annotated(jobs.AnnGroups, strings.Repeat("g", maxUser))), maxUser + 1<<10},
	} {
		kept := Object(tt.obj)
		text, err := json.Marshal(kept)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %d bytes", name, len(text))
		if len(text) > tt.most {
			t.Errorf("%s: %d bytes of JSON, want at most %d", name, len(text), tt.most)
		}
		if diff := cmp.Diff(kept, Object(kept)); diff != "" {
			t.Errorf("%s is cut again (-once +twice):\n%s", name, diff)
		}
	}
}

// randomTexts adds labels and annotations of random sizes.
func randomTexts(c *corev1.PersistentVolumeClaim) {
	domains := []string{"", "example.com/", "app.kubernetes.io/", contract.Domain, "volume.kubernetes.io/", "k8s.io/"}
	for i := range rand.IntN(8) {
		size := []int{10, 200, 2000, 5000}[rand.IntN(4)]
		c.Annotations[fmt.Sprint(domains[rand.IntN(len(domains))], "note", i)] = strings.Repeat([]string{"<", "n"}[rand.IntN(2)], rand.IntN(size))
		c.Labels[fmt.Sprint("label", i)] = strings.Repeat("x", rand.IntN(63))
	}
	if rand.IntN(2) == 0 {
		c.Annotations[contract.AnnCloneRequest] = strings.Repeat("s", rand.IntN(700))
	}
	c.Spec.AccessModes = slices.Repeat([]corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany, corev1.ReadWriteOnce}, 1+rand.IntN(2))
}

// A launch reads the claim from the caches only.
func TestRequestOfACutClaimIsThatOfTheWhole(t *testing.T) {
	var carried, none int
	for range 2000 {
		claim := fixture.Claim(randomTexts)
		want := jobs.Request(claim, fixture.Class(), config.Config{})
		got := jobs.Request(Claim(claim), fixture.Class(), config.Config{})
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("the request of %v (-whole +cut):\n%s", claim.ObjectMeta, diff)
		}
		if want.Labels != nil {
			carried++
		} else {
			none++
		}
	}
	if carried < 100 || none < 100 {
		t.Errorf("%d requests carry labels and annotations, %d carry none: the test sees only one of both", carried, none)
	}
}

// The same claim is asked for again and again, from the caches and live. Another hash would be a
// new request.
func TestHashOfACutClaimIsThatOfTheWhole(t *testing.T) {
	var whole, cut int
	for range 2000 {
		claim := fixture.Claim(randomTexts)
		keys := slices.Sorted(maps.Keys(claim.Annotations))
		keys = append(keys, slices.Sorted(maps.Keys(claim.Labels))...)
		hash := func(c *corev1.PersistentVolumeClaim) string {
			return jobs.Hash(jobs.Request(c, fixture.Class(), config.Config{}), keys)
		}
		kept := Claim(claim)
		if hash(claim) != hash(kept) || hash(claim) != hash(Claim(kept)) {
			t.Fatalf("the hash of %v is another when it is cut: %v", claim.ObjectMeta, kept.ObjectMeta)
		}
		if _, wasCut := kept.Annotations[config.AnnCut]; wasCut {
			cut++
		} else {
			whole++
		}
	}
	if whole < 100 || cut < 100 {
		t.Errorf("%d claims were kept whole, %d were cut: the test sees only one of both", whole, cut)
	}
}

// Part of a list of groups, or of a name, names another user.
func TestCreatorOfAClaimIsKeptWholeOrNotAtAll(t *testing.T) {
	groups := strings.Repeat("g,", maxUser/2-10)
	kept := Claim(fixture.Claim(fixture.Annotated(jobs.AnnUsername, "ann"), fixture.Annotated(jobs.AnnGroups, groups)))
	if kept.Annotations[jobs.AnnUsername] != "ann" || kept.Annotations[jobs.AnnGroups] != groups {
		t.Error("a user in many groups is not kept")
	}
	kept = Claim(fixture.Claim(fixture.Annotated(jobs.AnnUsername, "ann"), fixture.Annotated(jobs.AnnGroups, groups+groups)))
	if got := kept.Annotations[jobs.AnnUsername] + kept.Annotations[jobs.AnnGroups]; got != "" {
		t.Errorf("%d bytes are kept of a user in too many groups", len(got))
	}
}

// A long text of a user's under a key that names something must name nothing, rather than something
// else.
func TestLongNamesOfAClaimNameNothing(t *testing.T) {
	long := strings.Repeat("n", 513)
	kept := Claim(fixture.Claim(fixture.Annotated("volume.kubernetes.io/selected-node", long)))
	if got := kept.Annotations["volume.kubernetes.io/selected-node"]; got == "" || strings.Contains(long, got) {
		t.Errorf("the selected node is kept as %q", got)
	}
	kept = Claim(fixture.Claim(func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = long }))
	if got := kept.Spec.VolumeName; got == "" || strings.Contains(long, got) {
		t.Errorf("the volume is kept as %q", got)
	}
	if jobs.Abridge(long) == jobs.Abridge(long+"n") || jobs.Abridge(jobs.Abridge(long)) != jobs.Abridge(long) || jobs.Abridge("n") != "n" {
		t.Error("a long text is not abridged to its hash")
	}
}

// A user may write many thousand values, each once.
func TestManyValuesOfOneUserKeepNoOtherFromBeingShared(t *testing.T) {
	first := shareAll([]string{"common"})
	for i := range 2 * maxShared {
		shareAll([]string{fmt.Sprint(i)})
		if again := shareAll([]string{"common"}); &again[0] != &first[0] {
			t.Fatalf("after %d values a common one is not shared", i)
		}
	}
	if n := shared.Len(); n > maxShared {
		t.Errorf("%d values are shared, want at most %d", n, maxShared)
	}
}

func TestAReleasedJobOfABatchKeepsWhatIsObservedOfEachClaim(t *testing.T) {
	cfg := fixture.Config(t, "Delete", map[string]string{"ca": strings.Repeat("y", 1000), "batch-size": "2"})
	plan := fixture.Provision(cfg, fixture.Claim())
	plan.With = []jobs.Plan{fixture.Provision(cfg, fixture.Claim(func(c *corev1.PersistentVolumeClaim) { c.UID, c.Name = "other", "other" }))}
	job := fixture.Build(t, plan)
	for _, uid := range []string{fixture.UID, "other"} {
		fixture.Record(job, uid, func(r *jobs.Record) { r.Recorded = &jobs.Outcome{Verdict: contract.TryAgain} })
	}
	job.Finalizers = nil
	for _, one := range append([]jobs.Plan{plan}, plan.With...) {
		if whole, kept := runs.RecordOf(job, one.Request.UID), runs.RecordOf(cutJob(job), one.Request.UID); !cmp.Equal(whole, kept) {
			t.Errorf("the record (-whole +cut):\n%s", cmp.Diff(whole, kept))
		}
	}
}

// A PV that a container has described is created from the skeleton, as long as the Job exists.
func TestAReleasedJobKeepsTheSkeletonOfADescribedPV(t *testing.T) {
	job, _ := jobAndPod(t, contract.Done)
	fixture.Record(job, fixture.UID, func(r *jobs.Record) { r.Described = `{"source":{}}` })
	kept := cutJob(job).Spec.Template.Annotations
	if _, skeleton, err := runs.ReadRequest(kept, fixture.UID); err != nil || skeleton.Name != contract.PVName(fixture.UID) {
		t.Errorf("the skeleton is %v, %v", skeleton, err)
	}
}

func TestAReleasedJobKeepsWhatIsObservedOfIt(t *testing.T) {
	held, _ := jobAndPod(t, "")
	released, _ := jobAndPod(t, contract.TryAgain)
	whole, skeleton, err := runs.ReadRequest(cutJob(held).Spec.Template.Annotations, fixture.UID)
	if err != nil || skeleton == nil || len(whole.Properties["ca"]) != 60<<10 {
		t.Errorf("an undo could not repeat the request of a record: %v", err)
	}
	if kept := cutJob(released).Spec.Template.Annotations; len(kept) != 0 {
		t.Errorf("of a Job that is no record any more %v is kept", kept)
	}
	if _, _, err := runs.ReadRequest(released.Spec.Template.Annotations, fixture.UID); err != nil {
		t.Errorf("the Job that was cut has changed: %v", err)
	}
}
