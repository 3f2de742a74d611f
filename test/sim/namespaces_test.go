package sim_test

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
	"github.com/flex-provisioner/flex-provisioner/internal/fakecluster"
)

// further is a config namespace beside that of --namespace.
const further = "team"

var namespacePeople = []act{
	{"an administrator deletes a RoleBinding", func(w *world) string {
		if w.isLocked() {
			return ""
		}
		w.Server.Forbidden.Store(further, true)
		return "that of " + further
	}},
	{"an administrator creates a RoleBinding", func(w *world) string {
		if w.terminating || !w.isLocked() {
			return ""
		}
		w.Server.Forbidden.Delete(further)
		return "that of " + further
	}},
	{"an administrator deletes a config namespace", func(w *world) string {
		if w.terminating || w.isLocked() {
			return ""
		}
		w.terminating = true
		w.Server.Forbidden.Store(further, true) // its RoleBinding is deleted with it
		w.emptyNamespace()
		return further
	}},
}

// isLocked reports whether dispatchers lack permissions in the further config namespace.
func (w *world) isLocked() bool {
	_, locked := w.Server.Forbidden.Load(further)
	return locked
}

func (w *world) missingIn(_ context.Context, namespace string) (string, error) {
	if _, locked := w.Server.Forbidden.Load(namespace); locked {
		return "list jobs.batch", nil
	}
	return "", nil
}

// createNamespace creates what a config namespace has beside its configs, if that is missing.
func (w *world) createNamespace(namespace string) {
	if fakecluster.Get[*corev1.ServiceAccount](w, namespace, "writer") == nil {
		fakecluster.Create(w, fakecluster.Admin, &corev1.ServiceAccount{
			ObjectMeta: metav1.ObjectMeta{Name: "writer", Namespace: namespace, Labels: map[string]string{contract.LabelProvisioner: "true"}},
		})
	}
}

// emptyNamespace deletes what is in the namespace that is terminating. When nothing is left, it is
// deleted, and there is a new one with a RoleBinding.
func (w *world) emptyNamespace() {
	if !w.terminating {
		return
	}
	left := deleteAll[*corev1.ConfigMap](w) + deleteAll[*corev1.ServiceAccount](w) + deleteAll[*appsv1.ControllerRevision](w) + deleteAll[*batchv1.Job](w) +
		deleteAll[*corev1.Pod](w) + deleteAll[*corev1.Secret](w)
	if left > 0 {
		return
	}
	w.terminating = false
	w.Server.Forbidden.Delete(further)
	w.createMissing()
	w.tell("the namespace has gone, and an administrator creates it again")
}

// deleteAll deletes all objects of a type in the namespace that is terminating, and returns how
// many are left.
func deleteAll[O fakecluster.Object](w *world) int {
	for _, obj := range inFurther[O](w) {
		fakecluster.Delete(w, fakecluster.KubeControllerManager, obj)
	}
	return len(inFurther[O](w))
}

func inFurther[O fakecluster.Object](w *world) []O {
	return fakecluster.ListOf(w, func(obj O) bool { return obj.GetNamespace() == further })
}

// forgetRecords lets an administrator give up the records that a namespace waits for, of each Job
// one after the other.
func (w *world) forgetRecords() {
	if !w.terminating {
		return
	}
	for _, job := range inFurther[*batchv1.Job](w) {
		held := slices.DeleteFunc(jobs.UIDs(job), func(uid string) bool { return !runs.RecordOf(job, uid).Held })
		if len(held) > 0 && job.Annotations[jobs.AnnForget] != held[0] {
			w.forget(job, held[0])
		}
	}
}
