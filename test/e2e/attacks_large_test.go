//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// untilJudged is how long a request of the size that the API server admits may take. A policy that
// iterates over what its writer may make large took 10 to 50 s, all of them of the API server's
// processor, since the time grows with the square of it.
const untilJudged = 5 * time.Second

// large returns n short words. As annotations, 40,000 are as many as an object may have
// (TotalAnnotationSizeLimitB of k8s.io/apimachinery).
func large(n int) []string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprintf("%04x", i)
	}
	return words
}

// stuff gives an object annotations of no meaning.
func stuff(object metav1.Object) {
	all := object.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	for _, word := range large(40_000) {
		all[word] = ""
	}
	object.SetAnnotations(all)
}

// Whoever writes an object of the largest size pays for it, not the API server: the policies answer
// soon, and what has no more than it needs passes. All of them are dry runs.
func TestPoliciesAnswerSoonToLargeObjects(t *testing.T) {
	// Not beside others: what is measured is the API server's time.
	w := newWorld(t, "large")
	claim := w.claim("", "large", func(claim *corev1.PersistentVolumeClaim) {
		claim.Annotations = map[string]string{"volume.kubernetes.io/storage-provisioner": "flex-provisioner.io"}
		stuff(claim)
	})
	pv := attackPV("pvc-"+attackUID, attackUID, w.ns, anExport())
	stuff(pv)
	hosts := attackPV("pvc-"+attackUID, attackUID, w.ns, anExport(), mounted(large(80_000)...))
	asPodOf := func(change func(*corev1.PodTemplateSpec)) func(*corev1.PodTemplateSpec) {
		return func(p *corev1.PodTemplateSpec) {
			p.Labels, p.Spec.ServiceAccountName, p.Spec.SchedulingGates = nil, "default", nil
			change(p)
		}
	}
	volumes := asPodOf(func(p *corev1.PodTemplateSpec) {
		for _, word := range large(30_000) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: word, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		}
	})
	ports := asPodOf(func(p *corev1.PodTemplateSpec) {
		for i := range int32(60_000) {
			p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, corev1.ContainerPort{ContainerPort: i + 1})
		}
	})
	annotated := asPodOf(func(p *corev1.PodTemplateSpec) { stuff(p) })
	for _, a := range []attack{
		{"a pod of a tenant, with 80,000 values of an anti-affinity", clusterAdmin, w.createApart(large(80_000), 1), "", passes},
		{"the same, with 10,000 terms", clusterAdmin, w.createApart(nil, 10_000), "at most 100 terms", passes},
		{"a result on a claim with 40,000 annotations", theDispatcher, patchClaim(claim, `{"metadata":{"annotations":{"flex-provisioner.io/result":"done"}}}`), "at most 1000 annotations", passes},
		{"a PV with 40,000 annotations", cinderPod, createPV(pv), "at most 1000 annotations", passes},
		{"a PV with 80,000 mount options", clusterAdmin, createPV(hosts), "at most 100", passes},
		{"a label on a pod of a run with 40,000 annotations", clusterAdmin, w.labelOfRun(), "", passes},
		{"a pod with 40,000 annotations on a node of directories", clusterAdmin, createPod(annotated), "denied request", passes},
		{"a Job with 40,000 annotations of its pods", clusterAdmin, createJobIn(ownNamespace, annotated), "only the dispatcher creates a Job", passes},
	} {
		if took := w.soonest(a, untilJudged); took > untilJudged {
			t.Errorf("%s was answered after %s, limit %s", a.what, took, untilJudged)
		}
	}
	// The API server itself takes long for these: so does a pod where no policy of ours has any to judge.
	for _, pod := range []struct {
		what, refusal string
		change        func(*corev1.PodTemplateSpec)
	}{{"a pod with 30,000 volumes", "at most 100 volumes", volumes}, {"a pod with 60,000 ports", "at most 100 ports", ports}} {
		without := w.answeredAfter(attack{pod.what, clusterAdmin, createPodIn(w.ns, pod.change), "", passes})
		with := w.soonest(attack{pod.what + " on a node of directories", clusterAdmin, createPod(pod.change), pod.refusal, passes}, without+untilJudged)
		if with > without+untilJudged {
			t.Errorf("%s was answered after %s, without a policy after %s", pod.what, with, without)
		}
	}
}

// soonest returns how long the API server takes to answer an attack, in the best of three attempts if
// it takes longer than a limit: others may use this machine's processors.
func (w *world) soonest(a attack, limit time.Duration) time.Duration {
	w.t.Helper()
	took := w.answeredAfter(a)
	for range 2 {
		if took > limit {
			took = min(took, w.answeredAfter(a))
		}
	}
	return took
}

// answeredAfter returns how long the API server takes to answer an attack.
func (w *world) answeredAfter(a attack) time.Duration {
	w.t.Helper()
	client, start := w.as(a.as), time.Now()
	err := a.try(w.ctx(), client)
	took := time.Since(start).Round(time.Millisecond)
	w.t.Logf("%s: %s", a.what, took)
	if expected := a.expected(true); !expected.is(err) {
		w.t.Errorf("%s: expected %s, got %v", a.what, expected, err)
	}
	return took
}

// createApart tries a pod that keeps away from nodes by terms, each with these values.
func (w *world) createApart(values []string, terms int) try {
	pod := shell("apart", "", "true", nil)
	term := corev1.PodAffinityTerm{Namespaces: []string{systemNamespace}, TopologyKey: "kubernetes.io/hostname", LabelSelector: &metav1.LabelSelector{
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app.kubernetes.io/name", Operator: metav1.LabelSelectorOpIn, Values: append(values, "another")}},
	}}
	pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: slices.Repeat([]corev1.PodAffinityTerm{term}, terms)}}
	return func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().Pods(w.ns).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}

// labelOfRun makes a pod of a run that has as many annotations as a kubelet can write, applies the
// shipped policy for such pods to its namespace, and returns an attempt to label the pod.
func (w *world) labelOfRun() try {
	w.t.Helper()
	pod := shell("run", "", "true", nil)
	pod.Labels = map[string]string{"app.kubernetes.io/managed-by": "flex-dispatcher"}
	pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "flex-provisioner.io/test"}}
	stuff(pod)
	made, err := kube.CoreV1().Pods(w.ns).Create(w.ctx(), pod, metav1.CreateOptions{})
	w.must(err, "create the pod")
	label := func(ctx context.Context, client kubernetes.Interface, key string) error {
		changed := made.DeepCopy()
		changed.Labels[key] = "x"
		_, err := client.CoreV1().Pods(w.ns).Update(ctx, changed, metav1.UpdateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	shipped, err := kube.AdmissionregistrationV1().ValidatingAdmissionPolicies().Get(w.ctx(), "flex-provisioner-record-pods", metav1.GetOptions{})
	w.must(err, "get the policy")
	spec := shipped.Spec.DeepCopy()
	spec.MatchConstraints.NamespaceSelector.MatchExpressions[0].Values = []string{w.ns}
	w.policy(*spec)
	w.eventually(untilLevel, "the API server to refuse a change of the record", func(ctx context.Context) error {
		if err := label(ctx, kube, "flex-provisioner.io/claim-uid"); err == nil || !strings.Contains(err.Error(), "are not added to a pod") {
			return fmt.Errorf("the answer to a label of a record is: %w", err)
		}
		return nil
	})
	return func(ctx context.Context, client kubernetes.Interface) error { return label(ctx, client, "another") }
}
