package run_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/audit/run"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

const (
	configUID = "9d1f1c5e-5b0a-4a52-8b0e-3f6a1c2d4e5f"
	clusterID = "c-1"
	// claimUID and otherUID are of claims that do not exist any more.
	claimUID = "6f0c3b1e-2d4a-4c8e-9a57-0b1c2d3e4f50"
	otherUID = "6f0c3b1e-2d4a-4c8e-9a57-0b1c2d3e4f51"
)

// lab is a cluster with the class gold, in which a test plays the dispatcher and the kubelet.
type lab struct {
	t      *testing.T
	client *fake.Clientset
	*run.Auditor
	mu sync.Mutex // of what follows: an audit that watches reads it beside the test
	// started is called with each Job that is created, ungated with each pod whose gate is removed.
	started func(*batchv1.Job)
	ungated func(*corev1.Pod)
	log     string
	// created is how many Jobs there were.
	created int
}

// inLab runs a test in fake time.
func inLab(t *testing.T, keys map[string]string, test func(*lab), more ...runtime.Object) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		data := map[string]string{"image": "localhost/gold:v1", "service-account-name": "gold", "verbs": "provision,delete,list"}
		maps.Copy(data, keys)
		scheme := runtime.NewScheme()
		if err := metav1.AddMetaToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		l := &lab{t: t, client: fake.NewClientset(append(more, class("gold"), configOf("gold", data), account("gold"))...)}
		l.Auditor = &run.Auditor{
			Client: l.client, Objects: metadatafake.NewSimpleMetadataClient(scheme), Clock: clock.RealClock{}, Dispatcher: config.Dispatcher{Provisioner: contract.ProvisionerName},
			Namespace: "flex-provisioner", Cluster: run.Cluster{UID: clusterID}, Timeout: time.Minute,
		}
		l.client.PrependReactor("create", "jobs", l.createJob)
		l.client.PrependReactor("get", "pods", l.readLog)
		l.client.PrependReactor("patch", "pods", l.ungate)
		test(l)
	})
}

func class(name string) *storagev1.StorageClass {
	return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: contract.ProvisionerName}
}

// account is a ServiceAccount that a config may name.
func account(name string) *corev1.ServiceAccount {
	return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "flex-provisioner", Name: name, Labels: map[string]string{contract.LabelProvisioner: "true"}}}
}

func configOf(class string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "flex-provisioner", Name: class, UID: configUID, Labels: map[string]string{
			contract.LabelType: contract.TypeConfig, contract.LabelStorageClass: class,
		}}, Data: data,
	}
}

// createJob gives a Job its UID, and lets the test go on with it.
func (l *lab) createJob(action clienttesting.Action) (bool, runtime.Object, error) {
	job := action.(clienttesting.CreateAction).GetObject().(*batchv1.Job)
	l.mu.Lock()
	l.created++
	started := l.started
	l.mu.Unlock()
	job.UID, job.CreationTimestamp = types.UID(fmt.Sprintf("uid-%d", l.created)), metav1.Now()
	if job.Name == "" {
		job.Name = fmt.Sprintf("%s%d", job.GenerateName, l.created)
	}
	err := l.client.Tracker().Add(job)
	if err == nil && started != nil {
		started(job.DeepCopy())
	}
	return true, job, err
}

func (l *lab) readLog(action clienttesting.Action) (bool, runtime.Object, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return action.GetSubresource() == "log", &runtime.Unknown{Raw: []byte(l.log)}, nil
}

// pod gives a Job its pod. Those of earlier Jobs of its name stay: nothing collects them so soon.
func (l *lab) pod(job *batchv1.Job, change func(*corev1.Pod)) {
	l.t.Helper()
	pod := &corev1.Pod{ObjectMeta: *job.Spec.Template.ObjectMeta.DeepCopy(), Spec: *job.Spec.Template.Spec.DeepCopy()}
	pod.Namespace, pod.Name, pod.UID, pod.CreationTimestamp = job.Namespace, job.Name+"-of-"+string(job.UID), "uid of a pod", metav1.Now()
	pod.Labels[batchv1.JobNameLabel], pod.Labels[batchv1.ControllerUidLabel] = job.Name, string(job.UID)
	pod.Status.Phase = corev1.PodPending
	change(pod)
	if err := l.client.Tracker().Add(pod); err != nil {
		l.t.Error(err)
	}
}

// ends lets the container of each Job end, once the gate of its pod was removed.
func (l *lab) ends(code int32, message, log string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.log = log
	l.started = func(job *batchv1.Job) { l.pod(job, func(*corev1.Pod) {}) }
	l.ungated = func(pod *corev1.Pod) {
		pod.Status.Phase = corev1.PodSucceeded
		if code != 0 {
			pod.Status.Phase = corev1.PodFailed
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: contract.Container, State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Message: message, FinishedAt: metav1.Now()},
		}}}
	}
}

// ungate removes the gate of a pod.
func (l *lab) ungate(action clienttesting.Action) (bool, runtime.Object, error) {
	obj, err := l.client.Tracker().Get(action.GetResource(), action.GetNamespace(), action.(clienttesting.PatchAction).GetName())
	if err != nil {
		return true, nil, err
	}
	pod := obj.(*corev1.Pod).DeepCopy()
	pod.Spec.SchedulingGates = nil
	l.mu.Lock()
	ungated := l.ungated
	l.mu.Unlock()
	if ungated != nil {
		ungated(pod)
	}
	return true, pod, l.client.Tracker().Update(action.GetResource(), pod, pod.Namespace)
}

// mustLeaveNoJob checks that no Job of the audit is left.
func (l *lab) mustLeaveNoJob() {
	l.t.Helper()
	left, err := l.client.BatchV1().Jobs("").List(context.WithoutCancel(l.t.Context()), metav1.ListOptions{})
	if err != nil || len(left.Items) > 0 {
		l.t.Errorf("%d Jobs are left, %v", len(left.Items), err)
	}
}

// mustFail looks, and checks that the storage of gold could not be listed, for a reason, and that
// nothing is taken for missing.
func (l *lab) mustFail(words ...string) {
	l.t.Helper()
	got, err := l.Look(l.t.Context(), run.Storages{All: true})
	if err != nil || len(got.Found) > 0 || len(got.Faults) != 1 {
		l.t.Fatalf("found %v, faults %v, error %v", got.Found, got.Faults, err)
	}
	for _, word := range words {
		if text := got.Faults[0].Error(); !strings.Contains(text, word) {
			l.t.Errorf("%q does not say %q", text, word)
		}
	}
	l.mustLeaveNoJob()
}

// volumeLine is a line of a list.
func volumeLine(uid, volume, clusterUID string) string {
	return `{"uid":"` + uid + `","volume":"` + volume + `","size":1,"claimNamespace":"app","claimName":"data","clusterUID":"` + clusterUID + `","name":"x"}` + "\n"
}

func TestAnAuditListsAStorageByAJobOfTheClass(t *testing.T) {
	inLab(t, map[string]string{"env-from-secret": "login"}, func(l *lab) {
		l.ends(0, "2 volumes\n"+contract.EncodeListEnd(2), "level=INFO msg=Starting\n"+volumeLine("u", "v1", clusterID)+`{"a":"log line"}`+"\n"+volumeLine("w", "v2", "c-2"))
		ends := l.started
		l.started = func(job *batchv1.Job) {
			spec := job.Spec.Template.Spec
			if job.Name != "list-"+configUID+"-1" || job.Labels[config.LabelManagedBy] == config.ManagedBy || len(job.Finalizers)+len(job.Spec.Template.Finalizers) > 0 || *spec.AutomountServiceAccountToken || spec.Containers[0].EnvFrom[0].SecretRef.Name != "login" || len(spec.SchedulingGates) != 1 {
				l.t.Errorf("the Job is %s with %+v", job.Name, spec)
			}
			ends(job)
		}
		got, err := l.Look(l.t.Context(), run.Storages{All: true})
		if err != nil || len(got.Faults) > 0 {
			l.t.Fatal(err, got.Faults)
		}
		want := map[string][]audit.Volume{"gold": {
			{UID: "u", Volume: "v1", Size: 1, Namespace: "app", Name: "data", ClusterUID: clusterID},
			{UID: "w", Volume: "v2", Size: 1, Namespace: "app", Name: "data", ClusterUID: "c-2"},
		}}
		if diff := cmp.Diff(want, got.State.Volumes); diff != "" {
			l.t.Error(diff)
		}
		if len(got.Found) != 1 || got.Found[0].Kind != audit.VolumeLeft || got.Found[0].Volume.Volume != "v1" {
			l.t.Errorf("found %+v", got.Found)
		}
		l.mustLeaveNoJob()
	})
}

// ours is a PV of the class gold, whose volume a list that was not whole would lack.
func ours() *corev1.PersistentVolume {
	return &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pvc-" + claimUID, Annotations: map[string]string{contract.AnnClaimUID: claimUID}},
		Spec:       corev1.PersistentVolumeSpec{StorageClassName: "gold"},
	}
}

func TestAnAuditTakesNoVolumeForMissingByALogThatIsNotWhole(t *testing.T) {
	t.Parallel()
	lines := volumeLine("w", "v1", clusterID) + volumeLine(claimUID, "v2", clusterID)
	for name, log := range map[string]string{
		"its end was cut": lines[:len(lines)-20], "its beginning was rotated away": lines[20:], "it is empty": "", "it has more": lines + volumeLine("x", "v3", clusterID),
	} {
		t.Run(name, func(t *testing.T) {
			inLab(t, nil, func(l *lab) {
				l.ends(0, contract.EncodeListEnd(2), log)
				l.mustFail("cut or rotated", "containerLogMaxSize")
			}, ours())
		})
	}
}
