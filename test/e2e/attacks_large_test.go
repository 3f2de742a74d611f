//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// words returns n short words.
func words(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%04x", i)
	}
	return out
}

// stuff gives an object more annotations than a policy iterates over.
func stuff(object metav1.Object) {
	all := object.GetAnnotations()
	if all == nil {
		all = map[string]string{}
	}
	for _, word := range words(1_001) {
		all[word] = ""
	}
	object.SetAnnotations(all)
}

// The time that an expression takes grows with the square of the list over which it iterates. So a
// policy refuses a list of more than its limit, and what it does not iterate over passes. All of
// them are dry runs.
func TestPoliciesLimitWhatTheyIterateOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "large")
	claim := w.claim("", "large", func(claim *corev1.PersistentVolumeClaim) {
		claim.Annotations = map[string]string{"volume.kubernetes.io/storage-provisioner": "flex-provisioner.io"}
		stuff(claim)
	})
	pv := attackPV("pvc-"+attackUID, attackUID, w.ns, anExport())
	stuff(pv)
	hosts := attackPV("pvc-"+attackUID, attackUID, w.ns, anExport(), mounted(words(101)...))
	asPodOf := func(change func(*corev1.PodTemplateSpec)) func(*corev1.PodTemplateSpec) {
		return func(p *corev1.PodTemplateSpec) {
			p.Labels, p.Spec.ServiceAccountName, p.Spec.SchedulingGates = nil, "default", nil
			change(p)
		}
	}
	volumes := asPodOf(func(p *corev1.PodTemplateSpec) {
		for _, word := range words(101) {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: word, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}})
		}
	})
	ports := asPodOf(func(p *corev1.PodTemplateSpec) {
		for i := range int32(101) {
			p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, corev1.ContainerPort{ContainerPort: i + 1})
		}
	})
	annotated := asPodOf(func(p *corev1.PodTemplateSpec) { stuff(p) })
	w.run([]attack{
		{"a pod of a tenant, with 101 values of an anti-affinity", clusterAdmin, w.createApart(words(101), 1), "", passes},
		{"the same, with 101 terms", clusterAdmin, w.createApart(nil, 101), "at most 100 terms", passes},
		{"a result on a claim with 1,001 annotations", theDispatcher, patchClaim(claim, `{"metadata":{"annotations":{"flex-provisioner.io/result":"done"}}}`), "at most 1000 annotations", passes},
		{"a PV with 1,001 annotations", cinderPod, createPV(pv), "at most 1000 annotations", passes},
		{"a PV with 101 mount options", clusterAdmin, createPV(hosts), "at most 100", passes},
		{"a label on a pod of a run with 1,001 annotations", clusterAdmin, w.labelOfRun(), "", passes},
		{"a pod with 1,001 annotations on a node of directories", clusterAdmin, createPod(annotated), "denied request", passes},
		{"a Job with 1,001 annotations of its pods", clusterAdmin, createJobIn(ownNamespace, annotated), "only the dispatcher creates a Job", passes},
		{"a pod with 101 volumes on a node of directories", clusterAdmin, createPod(volumes), "at most 100 volumes", passes},
		{"a pod with 101 ports on a node of directories", clusterAdmin, createPod(ports), "at most 100 ports", passes},
	}, true)
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

// labelOfRun makes a pod of a run with more annotations than the policies iterate over, applies the
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
