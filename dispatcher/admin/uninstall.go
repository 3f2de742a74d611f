package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cut"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/options"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// Held is everything that carries a finalizer of the dispatcher. Without the dispatcher nothing
// would ever remove it: a namespace that is deleted with held Jobs in it would hang.
type Held struct {
	Jobs    []*batchv1.Job
	Volumes []*corev1.PersistentVolume
	// Pods of Jobs, kept to be read.
	Pods []*corev1.Pod
}

// IsEmpty reports whether there is nothing to release.
func (h Held) IsEmpty() bool { return len(h.Jobs)+len(h.Volumes)+len(h.Pods) == 0 }

// Uninstall lists what stays behind, and with yes it removes every finalizer, unless a dispatcher
// still serves the provisioner.
func Uninstall(ctx context.Context, client kubernetes.Interface, provisioner string, yes bool, out io.Writer) error {
	held, err := Survey(ctx, client, provisioner)
	if err != nil {
		return err
	}
	if err := held.Print(out); err != nil || held.IsEmpty() {
		return err
	}
	if !yes {
		return errors.New("nothing was changed: run the command again with --yes to remove the finalizers")
	}
	if err := refuseWhileServed(ctx, client, provisioner); err != nil {
		return err
	}
	return held.Free(ctx, client)
}

// refuseWhileServed returns an error if a Deployment runs a dispatcher of the provisioner. It would add
// its finalizers again, and never undo a run whose record was released under it. A Deployment whose
// ServiceAccount may create no PersistentVolume serves no claim, whatever its labels and flags say: one of
// a tenant is not to hold this up.
func refuseWhileServed(ctx context.Context, client kubernetes.Interface, provisioner string) error {
	var served error
	err := Each(ctx, client.AppsV1().Deployments(metav1.NamespaceAll).List, metav1.ListOptions{LabelSelector: "app.kubernetes.io/name=" + options.Name}, func(d *appsv1.Deployment) {
		if served == nil {
			served = whyServed(ctx, client, d, provisioner)
		}
	})
	if err != nil {
		return fmt.Errorf("list the Deployments of dispatchers: %w", err)
	}
	return served
}

// whyServed returns an error if a Deployment may run a dispatcher of the provisioner.
func whyServed(ctx context.Context, client kubernetes.Interface, d *appsv1.Deployment, provisioner string) error {
	if ptr.Deref(d.Spec.Replicas, 1)+d.Status.Replicas == 0 {
		return nil
	}
	serving, err := options.Of(d)
	if err == nil && serving.Provisioner != provisioner {
		return nil
	}
	serves, askErr := MayCreatePVs(ctx, client, d.Namespace, cmp.Or(d.Spec.Template.Spec.ServiceAccountName, "default"))
	if askErr == nil && !serves {
		return nil
	}
	if err := cmp.Or(askErr, err); err != nil {
		return fmt.Errorf("nothing was changed: a dispatcher may still be at work: %w", err)
	}
	return fmt.Errorf("nothing was changed: the Deployment %s/%s still runs a dispatcher. Remedy: disable what creates it again, such as GitOps, and run %s",
		d.Namespace, d.Name, quote.Command("kubectl", "-n", d.Namespace, "delete", "deployment", d.Name, "--cascade=foreground"))
}

// Survey lists what carries the dispatcher's finalizers, in every namespace, since it is not known
// which ones the dispatcher served. Objects that say that they are another provisioner's are left
// to that provisioner's dispatcher.
func Survey(ctx context.Context, client kubernetes.Interface, provisioner string) (Held, error) {
	var held Held
	if err := held.survey(ctx, client, provisioner); err != nil {
		return held, err
	}
	err := Each(ctx, client.CoreV1().PersistentVolumes().List, metav1.ListOptions{}, func(pv *corev1.PersistentVolume) {
		if slices.Contains(pv.Finalizers, contract.FinalizerStorage) && !pvs.OfAnotherProvisioner(pv.Annotations, provisioner) {
			held.Volumes = append(held.Volumes, cut.PV(pv))
		}
	})
	if err != nil {
		return held, fmt.Errorf("list the PersistentVolumes: %w", err)
	}
	return held, nil
}

func (h *Held) survey(ctx context.Context, client kubernetes.Interface, provisioner string) error {
	mine := metav1.ListOptions{LabelSelector: config.SelectManaged}
	err := Each(ctx, client.BatchV1().Jobs(metav1.NamespaceAll).List, mine, func(job *batchv1.Job) {
		if runs.IsRecord(job) && !config.IsOfAnotherProvisioner(job.Labels, provisioner) {
			h.Jobs = append(h.Jobs, cut.Object(job).(*batchv1.Job))
		}
	})
	if err != nil {
		return fmt.Errorf("list the Jobs: %w", err)
	}
	err = Each(ctx, client.CoreV1().Pods(metav1.NamespaceAll).List, mine, func(pod *corev1.Pod) {
		if runs.HasFinalizer(pod) && !config.IsOfAnotherProvisioner(pod.Labels, provisioner) {
			h.Pods = append(h.Pods, cut.Object(pod).(*corev1.Pod))
		}
	})
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	return nil
}

// Print writes what stays in the storage when the finalizers are removed.
func (h Held) Print(w io.Writer) error {
	for _, pv := range h.Volumes {
		claim := "no claim"
		if ref := pv.Spec.ClaimRef; ref != nil {
			claim = "the claim " + quote.Name(ref.Namespace+"/"+ref.Name)
		}
		if _, err := fmt.Fprintf(w, "PersistentVolume %s (%s, %s): its volume remains in the storage when it is deleted\n",
			pv.Name, pv.Status.Phase, claim); err != nil {
			return err
		}
	}
	for _, job := range h.Jobs {
		if _, err := fmt.Fprintf(w, "Job %s/%s (%s): a volume that it may have created without a PersistentVolume remains in the storage\n",
			job.Namespace, job.Name, claimsOf(job)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%d PersistentVolumes, %d Jobs and %d pods carry finalizers of the dispatcher\n",
		len(h.Volumes), len(h.Jobs), len(h.Pods))
	return err
}

// claimsOf names the claims of which a Job is still the record.
func claimsOf(job *batchv1.Job) string {
	var out []string
	for _, uid := range jobs.UIDs(job) {
		switch r := runs.RecordOf(job, uid); {
		case r.Held && r.Name == "":
			out = append(out, "a claim whose record is damaged")
		case r.Held:
			out = append(out, "the claim "+quote.Name(r.Namespace+"/"+r.Name))
		}
	}
	return strings.Join(out, ", ")
}

// Free removes the finalizers. It continues after the error of an object and returns the first
// error.
func (h Held) Free(ctx context.Context, client kubernetes.Interface) error {
	var first error
	keep := func(err error) {
		if err != nil && first == nil {
			first = err
		}
	}
	for _, pv := range h.Volumes {
		keep(removeFinalizer(ctx, client.CoreV1().PersistentVolumes(), pv, contract.FinalizerStorage))
	}
	for _, pod := range h.Pods {
		keep(removeFinalizer(ctx, client.CoreV1().Pods(pod.Namespace), pod, jobs.FinalizerRecord))
	}
	for _, job := range h.Jobs {
		keep(removeFinalizer(ctx, client.BatchV1().Jobs(job.Namespace), job, jobs.FinalizerRecord))
	}
	return first
}

// removeFinalizer removes a finalizer from an object and leaves all others, of which a pod that was cut
// names none.
func removeFinalizer[T metav1.Object](ctx context.Context, client patch.Patcher[T], obj T, finalizer string) error {
	if _, err := patch.Strategic(ctx, client, obj, patch.DropFinalizer(finalizer)); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("take the finalizer %s off %s: %w", finalizer, obj.GetName(), err)
	}
	return nil
}
