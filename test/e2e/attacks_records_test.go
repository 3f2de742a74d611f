//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// What the dispatcher writes on a Job that is the record of a claim.
const (
	managedBy      = "app.kubernetes.io/managed-by"
	recordName     = "flex-provisioner.io/record" // of an annotation and of a finalizer
	recordUIDs     = "flex-provisioner.io/uids"
	recordRevision = "flex-provisioner.io/config-revision"
	recordMember   = "claim.flex-provisioner.io/" + victimUID
)

// Whoever may create Jobs in a config namespace writes no record of a claim, and changes none. What
// administrators, queues and the audit do to Jobs passes.
func TestOnlyTheDispatcherWritesTheRecordOfAClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "forge")
	w.run(w.recordAttacks(), true)
}

// recordAttacks makes a Job with a record, and returns the attempts to forge one or to change that
// one. They are dry runs. The Job's record is no dispatcher's, since it lacks the label by which
// those are found.
func (w *world) recordAttacks() []attack {
	w.t.Helper()
	kept, released := w.keepRecord("kept", recordName), w.keepRecord("released")
	others := w.keepJob("others", func(job *batchv1.Job) {
		job.Spec.Template.Labels = map[string]string{managedBy: "flex-dispatcher-audit"}
	})
	const creates, changes, holds = "only the dispatcher creates a Job with", "only the dispatcher changes", "only the dispatcher adds the finalizer"
	label := func(key, value string) func(*batchv1.Job) {
		return func(job *batchv1.Job) { job.Labels = map[string]string{key: value} }
	}
	annotation := func(key string) func(*batchv1.Job) {
		return func(job *batchv1.Job) { job.Annotations = map[string]string{key: victimUID} }
	}
	collector := account("kube-system", "generic-garbage-collector", "")
	finalizer := func(job *batchv1.Job) { job.Finalizers = []string{recordName} }
	ofAudit := func(job *batchv1.Job) {
		job.Labels = map[string]string{managedBy: "flex-dispatcher-audit"}
		job.Annotations = map[string]string{recordUIDs: victimUID, recordRevision: ownNamespace + "/gold-1"}
		job.Spec.Template.Labels = map[string]string{managedBy: "flex-dispatcher-audit", "flex-provisioner.io/claim-uid": victimUID}
		job.Spec.Template.Annotations = map[string]string{"flex-provisioner.io/request": "{}"}
	}
	byAudit := func(job *batchv1.Job) {
		ofAudit(job)
		job.Annotations[recordName] = "{}"
	}
	ofPods := func(key, value string) func(*batchv1.Job) {
		return func(job *batchv1.Job) {
			job.Labels = map[string]string{managedBy: "flex-dispatcher-audit"}
			job.Spec.Template.Labels = map[string]string{key: value}
		}
	}
	describes := func(job *batchv1.Job) { job.Spec.Template.Annotations = map[string]string{recordUIDs: victimUID} }
	create := func(change func(*batchv1.Job)) func(context.Context, kubernetes.Interface) error {
		return func(ctx context.Context, client kubernetes.Interface) error {
			_, err := client.BatchV1().Jobs(nodeNamespace).Create(ctx, recordJob(change), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}
	}
	patched := func(patch string) func(context.Context, kubernetes.Interface) error { return patchesJob(kept, patch) }
	return []attack{
		{"a Job that serves another's claim", clusterAdmin, create(label(recordMember, "")), creates, passes},
		{"a Job that is the dispatcher's by its label", clusterAdmin, create(label(managedBy, "flex-dispatcher")), creates, passes},
		{"a Job with a record", clusterAdmin, create(annotation(recordName)), creates, passes},
		{"a Job with UIDs of claims", clusterAdmin, create(annotation(recordUIDs)), creates, passes},
		{"a Job with a config revision", clusterAdmin, create(annotation(recordRevision)), creates, passes},
		{"a Job with a confirmed pod", clusterAdmin, create(annotation(confirmGate)), creates, passes},
		{"a Job with the finalizer of records", clusterAdmin, create(finalizer), creates, passes},
		{"a Job of an audit, with a record", clusterAdmin, create(byAudit), creates, passes},
		{"a Job whose pods serve another's claim", clusterAdmin, create(ofPods("flex-provisioner.io/claim-uid", victimUID)), creates, passes},
		{"the same, by an annotation", clusterAdmin, create(describes), creates, passes},
		{"a Job whose pods are the dispatcher's by their label", clusterAdmin, create(ofPods(managedBy, "flex-dispatcher")), creates, passes},
		{"the dispatcher's label in a pod template of others", clusterAdmin, patchesJob(others, `{"spec":{"template":{"metadata":{"labels":{"`+managedBy+`":"flex-dispatcher"}}}}}`), changes, passes},
		{"another record", clusterAdmin, patched(`{"metadata":{"annotations":{"` + recordName + `":"{}"}}}`), changes, passes},
		{"no record", clusterAdmin, patched(`{"metadata":{"annotations":{"` + recordName + `":null}}}`), changes, passes},
		{"the claim of another", clusterAdmin, patched(`{"metadata":{"labels":{"claim.flex-provisioner.io/` + attackUID + `":""}}}`), changes, passes},
		{"the dispatcher's label", clusterAdmin, patched(`{"metadata":{"labels":{"` + managedBy + `":"flex-dispatcher"}}}`), changes, passes},
		{"another PV in its pod template", clusterAdmin, patched(`{"spec":{"template":{"metadata":{"annotations":{"flex-provisioner.io/pv":"{}"}}}}}`), changes, passes},
		{"no gate in its pod template", clusterAdmin, patched(`{"spec":{"template":{"spec":{"schedulingGates":null}}}}`), changes, passes},
		{"the finalizer of a record that was released", clusterAdmin, patchesJob(released, `{"metadata":{"finalizers":["`+recordName+`"]}}`), holds, passes},
		{"what the dispatcher launches", theDispatcher, create(label(recordMember, "")), "", passes},
		{"what the dispatcher records", theDispatcher, patched(`{"metadata":{"annotations":{"` + recordName + `":"{}"}}}`), "", passes},
		{"a record is given up", clusterAdmin, patched(`{"metadata":{"annotations":{"flex-provisioner.io/forget":"` + victimUID + `"}}}`), "", passes},
		{"a record is released in an emergency", clusterAdmin, patched(`{"metadata":{"finalizers":null}}`), "", passes},
		{"a queue lets a Job start", clusterAdmin, patched(asQueue), "", passes},
		{"a Job is deleted with its pods", collector, patched(`{"metadata":{"finalizers":["` + recordName + `","foregroundDeletion"]}}`), "", passes},
		{"a Job of an audit", clusterAdmin, create(ofAudit), "", passes},
		{"a Job of others", clusterAdmin, create(label("app", "backup")), "", passes},
	}
}

// The garbage collector deletes an object with its owner, and volumes need their revision.
func TestNoControllerTakesOverAConfigRevision(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "adopt")
	w.run(w.revisionAttacks(), true)
}

// revisionAttacks makes a config revision as an administrator does who restores one, and returns the
// attempts of the controllers of StatefulSets and DaemonSets to take it over, which whoever may create
// those can cause. They are dry runs.
func (w *world) revisionAttacks() []attack {
	w.t.Helper()
	revisions := kube.AppsV1().ControllerRevisions(nodeNamespace)
	restored := func(name, by string, owners ...metav1.OwnerReference) *appsv1.ControllerRevision {
		return &appsv1.ControllerRevision{
			ObjectMeta: metav1.ObjectMeta{Name: w.ns + "-" + name, Labels: map[string]string{managedBy: by}, OwnerReferences: owners}, Data: runtime.RawExtension{Raw: []byte("{}")},
		}
	}
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "any", UID: attackUID, Controller: new(true)}
	create := func(revision *appsv1.ControllerRevision) func(context.Context, kubernetes.Interface) error {
		return func(ctx context.Context, client kubernetes.Interface) error {
			_, err := client.AppsV1().ControllerRevisions(nodeNamespace).Create(ctx, revision, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}
	}
	kept, err := revisions.Create(w.ctx(), restored("kept", "flex-dispatcher"), metav1.CreateOptions{})
	w.must(err, "create a config revision")
	w.remove(func() {
		w.gone(revisions.Delete(w.ctx(), kept.Name, metav1.DeleteOptions{}), "the config revision "+kept.Name)
	})
	adopt := func(ctx context.Context, client kubernetes.Interface) error {
		patch := fmt.Sprintf(`{"metadata":{"uid":%q,"ownerReferences":[{"apiVersion":"apps/v1","kind":"StatefulSet","name":"any","uid":%q,"controller":true}]}}`, kept.UID, attackUID)
		_, err := client.AppsV1().ControllerRevisions(nodeNamespace).Patch(ctx, kept.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	remove := func(ctx context.Context, client kubernetes.Interface) error {
		return client.AppsV1().ControllerRevisions(nodeNamespace).Delete(ctx, kept.Name, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}})
	}
	const refusal = "a config revision has no owner"
	return []attack{
		{"a StatefulSet takes over a config revision", account("kube-system", "statefulset-controller", ""), adopt, refusal, passes},
		{"a DaemonSet takes over a config revision", account("kube-system", "daemon-set-controller", ""), adopt, refusal, passes},
		{"a StatefulSet deletes a config revision as one of its own", account("kube-system", "statefulset-controller", ""), remove, "no revision of a StatefulSet", passes},
		{"a config revision is deleted", clusterAdmin, remove, "", passes},
		{"a config revision with an owner", clusterAdmin, create(restored("owned", "flex-dispatcher", owner)), refusal, passes},
		{"a config revision is restored", clusterAdmin, create(restored("restored", "flex-dispatcher")), "", passes},
		{"a revision of a StatefulSet", clusterAdmin, create(restored("others", "helm", owner)), "", passes},
	}
}

// asQueue is what Kueue changes when it admits a Job.
const asQueue = `{"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"storage"}},"spec":{"suspend":false,"template":{` +
	`"metadata":{"labels":{"kueue.x-k8s.io/podset":"main"}},"spec":{"nodeSelector":{"pool":"storage"}}}}}`

// recordJob is a suspended Job of a provisioning pod, which has no labels yet.
func recordJob(change func(*batchv1.Job)) *batchv1.Job {
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: "provision-" + victimUID + "-9"},
		Spec: batchv1.JobSpec{Suspend: new(true), Template: provisioningPod(func(p *corev1.PodTemplateSpec) {
			p.Labels, p.Spec.RestartPolicy = nil, corev1.RestartPolicyNever
		})},
	}
	change(job)
	return job
}

// keepRecord makes a Job with a record as the dispatcher does, until the test's end, and returns its
// name.
func (w *world) keepRecord(name string, finalizers ...string) string {
	w.t.Helper()
	return w.keepJob(name, func(job *batchv1.Job) {
		job.Labels = map[string]string{recordMember: ""}
		job.Annotations = map[string]string{recordName: `{"version":1}`, recordUIDs: victimUID}
		job.Finalizers = finalizers
		job.Spec.Template.Annotations = map[string]string{"flex-provisioner.io/pv": `{"kind":"PersistentVolume"}`}
	})
}

// keepJob makes a Job as the dispatcher does, until the test's end, and returns its name.
func (w *world) keepJob(name string, change func(*batchv1.Job)) string {
	w.t.Helper()
	jobs := kube.BatchV1().Jobs(nodeNamespace)
	job := recordJob(change)
	job.Name = w.ns + "-" + name
	_, err := w.as(theDispatcher).BatchV1().Jobs(nodeNamespace).Create(w.ctx(), job, metav1.CreateOptions{})
	w.must(err, "create a Job")
	w.remove(func() {
		_, err := jobs.Patch(w.ctx(), job.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		w.gone(err, "the finalizer of the Job "+job.Name)
		w.gone(jobs.Delete(w.ctx(), job.Name, metav1.DeleteOptions{PropagationPolicy: new(metav1.DeletePropagationBackground)}), "the Job "+job.Name)
	})
	return job.Name
}

// patchesJob tries a merge patch of a Job.
func patchesJob(name, patch string) func(context.Context, kubernetes.Interface) error {
	return func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.BatchV1().Jobs(nodeNamespace).Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
}

// The scheduler keeps pods of all namespaces from the nodes that an anti-affinity of one pod names.
func TestNoPodKeepsRunsFromNodes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "apart")
	w.run(w.otherPodAttacks(), true)
}

// otherPodAttacks are attempts to create a pod of a tenant that keeps pods of runs or of the
// dispatcher from all nodes, and pods that keep only others from theirs. They are dry runs.
func (w *world) otherPodAttacks() []attack {
	from := func(namespace string, term corev1.PodAffinityTerm) func(context.Context, kubernetes.Interface) error {
		return createPodOf(namespace, nil, func(p *corev1.PodTemplateSpec) {
			p.Labels, p.Annotations, p.Spec.SchedulingGates, p.Spec.ServiceAccountName = nil, nil, nil, ""
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{term}}}
		})
	}
	apart := func(selector *metav1.LabelSelector, in *metav1.LabelSelector, namespaces ...string) func(context.Context, kubernetes.Interface) error {
		return from(w.ns, corev1.PodAffinityTerm{TopologyKey: corev1.LabelOSStable, LabelSelector: selector, NamespaceSelector: in, Namespaces: namespaces})
	}
	every, where := &metav1.LabelSelector{}, func(key, value string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
	having := func(key string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: key, Operator: metav1.LabelSelectorOpExists}}}
	}
	const refusal = "must not select the pods of flex-provisioner"
	return []attack{
		{"no run starts on a node", clusterAdmin, apart(having("flex-provisioner.io/verb"), nil, nodeNamespace), refusal, passes},
		{"no pod of any namespace does", clusterAdmin, apart(every, every), refusal, passes},
		{"no dispatcher does", clusterAdmin, apart(every, nil, systemNamespace), refusal, passes},
		{"the same, by the label of the namespace", clusterAdmin, apart(where("app.kubernetes.io/name", "flex-dispatcher"), where(corev1.LabelMetadataName, systemNamespace)), refusal, passes},
		{"no Job's pod does, by a label of the Job controller", clusterAdmin, apart(having("batch.kubernetes.io/job-name"), every), refusal, passes},
		{"the same, from the namespace itself", clusterAdmin, from(nodeNamespace, corev1.PodAffinityTerm{TopologyKey: corev1.LabelOSStable, LabelSelector: every}), refusal, passes},
		{"no pod of the shipped isolated class does", clusterAdmin, apart(having("network-access"), every), refusal, passes},
		{"no disk of the class loop is attached", clusterAdmin, apart(where("app.kubernetes.io/name", "loop-attacher"), nil, "flex-loop"), refusal, passes},
		{"the same, by a label of the DaemonSet controller", clusterAdmin, apart(having("controller-revision-hash"), nil, "flex-loop"), refusal, passes},
		{"apart from its own kind, in the namespace itself", clusterAdmin, from(nodeNamespace, corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: where("app", "web")}), "", passes},
		{"one web server on each node", clusterAdmin, apart(where("app", "web"), every), "", passes},
		{"the same, by the recommended label", clusterAdmin, apart(where("app.kubernetes.io/name", "web"), every), "", passes},
		{"apart from the pods of another namespace", clusterAdmin, apart(every, nil, "default"), "", passes},
		{"the same, by the label of that namespace", clusterAdmin, apart(every, where(corev1.LabelMetadataName, "default")), "", passes},
	}
}
