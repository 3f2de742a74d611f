//go:build e2e && kube136

package e2e

import (
	"context"
	"fmt"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// An event of the claim says that its Job is suspended by a queue; when the Job is resumed it runs.
func TestSuspendedJobWaitsForItsQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "queue")
	w.suspendJobs()
	class, _ := w.service(scripted(deletes+offer, nil, func(p *corev1.PodTemplateSpec) {
		p.Labels = map[string]string{queueName: w.ns}
	}))
	claim := w.claim(class, "data")
	w.event(claim, "JobSuspended", "provision-"+string(claim.UID)+"-1", "a queue without room")
	job := w.onlyJob(claim, "provision")
	_, err := kube.BatchV1().Jobs(job.Namespace).Patch(w.ctx(), job.Name, types.MergePatchType, []byte(`{"spec": {"suspend": false}}`), metav1.PatchOptions{})
	w.must(err, "give the Job room")
	w.bound(claim)
}

// suspendJobs plays Kueue: provision Jobs in the queue that is named after the test's namespace are
// created suspended.
func (w *world) suspendJobs() {
	w.t.Helper()
	admission := kube.AdmissionregistrationV1()
	_, err := admission.MutatingAdmissionPolicies().Create(w.ctx(), &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints:   &admissionregistrationv1.MatchResources{ResourceRules: created("batch", "jobs")},
			MatchConditions: []admissionregistrationv1.MatchCondition{{
				Name: "in-the-queue",
				Expression: fmt.Sprintf("object.metadata.name.startsWith('provision-') && has(object.metadata.labels)"+
					" && object.metadata.labels[?'%s'].orValue('') == %q", queueName, w.ns),
			}},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType:          admissionregistrationv1.PatchTypeApplyConfiguration,
				ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: "Object{spec: Object.spec{suspend: true}}"},
			}},
		},
	}, metav1.CreateOptions{})
	w.must(err, "create the queue's policy")
	w.remove(func() {
		w.gone(admission.MutatingAdmissionPolicies().Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "policy "+w.ns)
	})
	_, err = admission.MutatingAdmissionPolicyBindings().Create(w.ctx(), &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: w.ns},
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: w.ns},
	}, metav1.CreateOptions{})
	w.must(err, "bind the queue's policy")
	w.remove(func() {
		w.gone(admission.MutatingAdmissionPolicyBindings().Delete(w.ctx(), w.ns, metav1.DeleteOptions{}), "policy binding "+w.ns)
	})
	w.eventually(toBind, "the API server to keep the queue's policy", w.jobsAreSuspended)
}

func (w *world) jobsAreSuspended(ctx context.Context) error {
	made, err := kube.BatchV1().Jobs(w.ns).Create(ctx, &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "provision-try", Labels: map[string]string{queueName: w.ns}},
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: shell("try", "", "true", nil).Spec}},
	}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err == nil && (made.Spec.Suspend == nil || !*made.Spec.Suspend) {
		err = fmt.Errorf("a Job in the queue %s is not suspended", w.ns)
	}
	return err
}
