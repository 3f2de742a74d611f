//go:build e2e && everyday && kube136

package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// mutates changes objects that are created in the test's namespace, by an expression in CEL that
// returns a JSON patch.
func (w *world) mutates(group, resource, expression string) {
	w.t.Helper()
	admission := kube.AdmissionregistrationV1()
	_, err := admission.MutatingAdmissionPolicies().Create(w.ctx(), &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints:   &admissionregistrationv1.MatchResources{ResourceRules: created(group, resource)},
			MatchConditions:    []admissionregistrationv1.MatchCondition{{Name: "of-the-test", Expression: fmt.Sprintf("request.namespace == %q", w.ns)}},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{Expression: expression},
			}},
		},
	}, metav1.CreateOptions{})
	w.must(err, "create the policy")
	w.remove(func() {
		w.gone(admission.MutatingAdmissionPolicies().Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "policy "+w.ns)
	})
	_, err = admission.MutatingAdmissionPolicyBindings().Create(w.ctx(), &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: w.ns},
	}, metav1.CreateOptions{})
	w.must(err, "bind the policy")
	w.remove(func() {
		w.gone(admission.MutatingAdmissionPolicyBindings().Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "policy binding "+w.ns)
	})
}

// A policy lets each Job expire as soon as it has finished. No outcome is lost, and the attempts are
// still counted.
func TestJobsThatExpireAtOnceLoseNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "expire")
	w.mutates("batch", "jobs", `[JSONPatch{op: "add", path: "/spec/ttlSecondsAfterFinished", value: 0}]`)
	try := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "try"}, Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: shell("try", "", "true", nil).Spec}}}
	w.eventually(toBind, "the API server to keep the policy", func(ctx context.Context) error {
		made, err := kube.BatchV1().Jobs(w.ns).Create(ctx, try, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && made.Spec.TTLSecondsAfterFinished == nil {
			err = errors.New("a Job does not expire")
		}
		return err
	})
	w.started()
	w.class(w.ns, w.oursAlone)
	cm := w.config(w.ns, w.ns, scripted(deletes+`[ "$FLEX_CLAIM_NAME" = good ] || exit 69`+"\n"+offer, nil))
	good, bad := w.claim(w.ns, "good"), w.claim(w.ns, "bad")
	w.bound(good)
	w.failed(bad, 4, 2*time.Minute)
	w.edit(cm, scripted(deletes+offer, nil))
	w.bound(bad)
	for _, claim := range []*corev1.PersistentVolumeClaim{good, bad} {
		w.deleteClaim(claim)
		w.vanished(claim)
	}
}

// A policy adds to each pod what policies add: labels, annotations, a toleration, a variable, and a
// container of a mesh that never ends.
func TestAPodThatAPolicyChangesDoesItsWork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "changed")
	w.mutates("", "pods", `[
		JSONPatch{op: "add", path: "/metadata/labels/costs", value: "42"},
		JSONPatch{op: "add", path: "/metadata/annotations/sidecar.istio.io~1status", value: "injected"},
		JSONPatch{op: "add", path: "/spec/containers/0/env/-", value: Object.spec.containers.env{name: "HTTPS_PROXY", value: "http://192.0.2.1:3128"}},
		JSONPatch{op: "add", path: "/spec/containers/-", value: Object.spec.containers{
			name: "mesh-proxy", image: "`+bashImage+`", command: ["/bin/sh", "-c", "sleep 3600"]}}]`)
	w.eventually(toBind, "the API server to keep the policy", func(ctx context.Context) error {
		pod := shell("try", "", "true", nil)
		pod.Labels, pod.Annotations, pod.Spec.Containers[0].Env = map[string]string{"a": "b"}, map[string]string{"a": "b"}, []corev1.EnvVar{{Name: "a"}}
		made, err := kube.CoreV1().Pods(w.ns).Create(ctx, pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if err == nil && made.Labels["costs"] != "42" {
			err = errors.New("a pod is not changed")
		}
		return err
	})
	w.started()
	w.class(w.ns, w.oursAlone)
	w.config(w.ns, w.ns, scripted(deletes+`[ "$HTTPS_PROXY" = http://192.0.2.1:3128 ]`+"\n"+offer, nil))
	claim := w.claim(w.ns, "data")
	w.bound(claim)
	equal(t, "containers of its pod", len(w.onlyPod(w.onlyJob(claim, "provision")).Spec.Containers), 2)
	w.deleteClaim(claim)
	w.vanished(claim)
}
