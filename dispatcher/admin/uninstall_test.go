package admin_test

import (
	"io"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// Uninstalling says what stays behind and takes off our finalizers, and no other.
func TestUninstallFreesAllAndSaysWhatStays(t *testing.T) {
	mine := map[string]string{config.LabelManagedBy: config.ManagedBy}
	client := fake.NewClientset(
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "held", Namespace: "ns", Labels: mine, Finalizers: []string{"other/one", jobs.FinalizerRecord}}},
		&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "released", Namespace: "ns", Labels: mine}},
		&corev1.PersistentVolume{
			ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", Finalizers: []string{contract.FinalizerStorage, "kubernetes.io/pv-protection"}},
			Spec:       corev1.PersistentVolumeSpec{ClaimRef: &corev1.ObjectReference{Namespace: "app", Name: "x\n\x1b[31m"}}, // which Kubernetes does not check
		},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "kept", Namespace: "ns", Labels: mine, Finalizers: []string{batchv1.JobTrackingFinalizer, jobs.FinalizerRecord}}},
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "theirs", Finalizers: []string{"kubernetes.io/pv-protection"}}},
	)
	held, err := admin.Survey(t.Context(), client, contract.ProvisionerName)
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	if err := held.Print(&said); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{"PersistentVolume pvc-1", `the claim "app/x\n\x1b[31m"`, "Job ns/held", "1 PersistentVolumes, 1 Jobs and 1 pods"} {
		if !strings.Contains(said.String(), words) {
			t.Errorf("%q is not in:\n%s", words, said.String())
		}
	}
	if strings.Contains(said.String(), "theirs") || strings.Contains(said.String(), "released") {
		t.Errorf("it names what is not held:\n%s", said.String())
	}
	if err := held.Free(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	job, err := client.BatchV1().Jobs("ns").Get(t.Context(), "held", metav1.GetOptions{})
	if err != nil || len(job.Finalizers) != 1 || job.Finalizers[0] != "other/one" {
		t.Errorf("the Job's finalizers are %v, %v", job.Finalizers, err)
	}
	pod, err := client.CoreV1().Pods("ns").Get(t.Context(), "kept", metav1.GetOptions{})
	if err != nil || len(pod.Finalizers) != 1 || pod.Finalizers[0] != batchv1.JobTrackingFinalizer {
		t.Errorf("the pod's finalizers are %v, %v", pod.Finalizers, err)
	}
	if left, err := admin.Survey(t.Context(), client, contract.ProvisionerName); err != nil || len(left.Jobs)+len(left.Volumes)+len(left.Pods) != 0 {
		t.Errorf("still held: %+v, %v", left, err)
	}
}

// The record of a run that had failed was released under a dispatcher that GitOps had created again.
// When the claim was deleted, nothing undid the run: its volume stayed.
func TestNoFinalizerIsRemovedWhileADispatcherServesTheProvisioner(t *testing.T) {
	for name, c := range map[string]struct {
		replicas, pods int32
		args           []string
		may, refused   bool
	}{
		"it runs":                          {1, 1, nil, true, true},
		"it starts":                        {1, 0, nil, true, true},
		"its pods end":                     {0, 1, nil, true, true},
		"it is scaled to zero":             {0, 0, nil, true, false},
		"it is another's":                  {1, 1, []string{"--provisioner-name=example.com/theirs"}, true, false},
		"its flags cannot be read":         {1, 1, []string{"--provisioner-name"}, true, true},
		"it has a flag of a later version": {1, 1, []string{"--later=1"}, true, true},
		"its account may do nothing":       {1, 1, nil, false, false},
		"it is a tenant's, of any flags":   {1, 1, []string{"--provisioner-name"}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			meta := metav1.ObjectMeta{Name: "flex-dispatcher", Namespace: "flex-system", Labels: map[string]string{"app.kubernetes.io/name": "flex-dispatcher"}}
			deployment := &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Replicas: &c.replicas}, Status: appsv1.DeploymentStatus{Replicas: c.pods}}
			deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "dispatcher", Args: c.args}}
			deployment.Spec.Template.Spec.ServiceAccountName = "of-it"
			pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", Finalizers: []string{contract.FinalizerStorage}}}
			client := fake.NewClientset(deployment, pv)
			client.PrependReactor("create", "subjectaccessreviews", func(a clienttesting.Action) (bool, runtime.Object, error) {
				review := a.(clienttesting.CreateAction).GetObject().(*authorizationv1.SubjectAccessReview)
				review.Status.Allowed = c.may && review.Spec.User == "system:serviceaccount:flex-system:of-it"
				return true, review, nil
			})
			var said strings.Builder
			err := admin.Uninstall(t.Context(), client, contract.ProvisionerName, true, &said)
			if (err != nil) != c.refused || c.refused && !strings.Contains(err.Error(), "Deployment flex-system/flex-dispatcher") {
				t.Errorf("got %v", err)
			}
			now, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-1", metav1.GetOptions{})
			if err != nil || (len(now.Finalizers) == 1) != c.refused || !strings.Contains(said.String(), "PersistentVolume pvc-1") {
				t.Errorf("%v, the finalizers are %v, and it says %s", err, now.Finalizers, said.String())
			}
		})
	}
}

// Two dispatchers of different provisioners may serve one cluster: uninstalling one leaves what the
// other holds.
func TestUninstallLeavesWhatAnotherProvisionerHolds(t *testing.T) {
	var objects []runtime.Object
	for name, provisioner := range map[string]string{"ours": "example.com/ours", "theirs": "example.com/theirs"} {
		meta := metav1.ObjectMeta{Name: name, Namespace: "ns", Finalizers: []string{jobs.FinalizerRecord}, Labels: map[string]string{
			config.LabelManagedBy: config.ManagedBy, config.LabelProvisioner: config.ProvisionerLabel(provisioner),
		}}
		objects = append(objects, &batchv1.Job{ObjectMeta: meta}, &corev1.Pod{ObjectMeta: meta}, &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{contract.AnnProvisionedBy: provisioner}, Finalizers: []string{contract.FinalizerStorage},
		}})
	}
	held, err := admin.Survey(t.Context(), fake.NewClientset(objects...), "example.com/ours")
	if err != nil || len(held.Jobs) != 1 || len(held.Pods) != 1 || len(held.Volumes) != 1 {
		t.Fatalf("held: %d Jobs, %d pods, %d volumes, %v", len(held.Jobs), len(held.Pods), len(held.Volumes), err)
	}
	for _, name := range []string{held.Jobs[0].Name, held.Pods[0].Name, held.Volumes[0].Name} {
		if name != "ours" {
			t.Errorf("held: %s", name)
		}
	}
}

// Users write up to 1.5 MiB on each of the objects that uninstalling lists.
func TestUninstallListsPageByPage(t *testing.T) {
	client, lists := fake.NewClientset(), 0
	client.PrependReactor("list", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if lists++; action.(clienttesting.ListActionImpl).ListOptions.Limit == 0 {
			t.Errorf("%s are listed at once", action.GetResource().Resource)
		}
		return false, nil, nil
	})
	held := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", Finalizers: []string{contract.FinalizerStorage}}}
	if err := client.Tracker().Add(held); err != nil {
		t.Fatal(err)
	}
	if err := admin.Uninstall(t.Context(), client, contract.ProvisionerName, true, io.Discard); err != nil || lists != 4 {
		t.Errorf("%d lists, %v", lists, err)
	}
}
