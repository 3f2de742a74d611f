package run

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cut"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

// ReadState reads what an audit judges: everything of its provisioner, in all namespaces. Of Secrets
// it reads the metadata only.
func (a *Auditor) ReadState(ctx context.Context) (audit.State, error) {
	s := audit.State{Now: a.Clock.Now(), ClusterUID: a.Cluster.UID, Volumes: map[string][]audit.Volume{}}
	if err := a.readClaimsAndPVs(ctx, &s); err != nil {
		return s, err
	}
	if err := a.readRuns(ctx, &s); err != nil {
		return s, err
	}
	secrets := a.Objects.Resource(corev1.SchemeGroupVersion.WithResource("secrets"))
	err := admin.Each(ctx, secrets.List, metav1.ListOptions{LabelSelector: contract.LabelClaimUID}, func(secret *metav1.PartialObjectMetadata) {
		s.Secrets = append(s.Secrets, nameOf(&secret.ObjectMeta, contract.LabelClaimUID))
	})
	if err != nil {
		return s, fmt.Errorf("list the metadata of the Secrets: %w", err)
	}
	return s, nil
}

// nameOf returns the name and the age of an object, and of its labels those with these keys.
func nameOf(m *metav1.ObjectMeta, labels ...string) metav1.ObjectMeta {
	out := metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, CreationTimestamp: m.CreationTimestamp}
	for _, key := range labels {
		if value, ok := m.Labels[key]; ok {
			metav1.SetMetaDataLabel(&out, key, value)
		}
	}
	return out
}

func (a *Auditor) readClaimsAndPVs(ctx context.Context, s *audit.State) error {
	err := admin.Each(ctx, a.Client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List, metav1.ListOptions{}, func(claim *corev1.PersistentVolumeClaim) {
		claim = cut.Claim(claim)
		meta := nameOf(&claim.ObjectMeta)
		meta.UID, meta.DeletionTimestamp = claim.UID, claim.DeletionTimestamp
		s.Claims = append(s.Claims, &corev1.PersistentVolumeClaim{ObjectMeta: meta, Spec: corev1.PersistentVolumeClaimSpec{
			VolumeName: claim.Spec.VolumeName, Resources: claim.Spec.Resources,
		}, Status: corev1.PersistentVolumeClaimStatus{Phase: claim.Status.Phase}})
	})
	if err != nil {
		return fmt.Errorf("list the PersistentVolumeClaims: %w", err)
	}
	err = admin.Each(ctx, a.Client.CoreV1().PersistentVolumes().List, metav1.ListOptions{}, func(pv *corev1.PersistentVolume) {
		if pv = cut.PV(pv); pv.Annotations[contract.AnnClaimUID] == "" || pvs.OfAnotherProvisioner(pv.Annotations, a.Provisioner) {
			s.Others = append(s.Others, pv)
		} else {
			s.PVs = append(s.PVs, pv)
		}
	})
	if err != nil {
		return fmt.Errorf("list the PersistentVolumes: %w", err)
	}
	return nil
}

// readRuns reads the Jobs and pods of dispatchers, after the PVs that name some of their namespaces.
// Of those in other namespaces anyone may have written anything, and only the names are kept.
func (a *Auditor) readRuns(ctx context.Context, s *audit.State) error {
	served, err := a.served(ctx, s)
	if err != nil {
		return err
	}
	mine := metav1.ListOptions{LabelSelector: config.SelectManaged}
	var all []*batchv1.Job
	err = admin.Each(ctx, a.Client.BatchV1().Jobs(metav1.NamespaceAll).List, mine, func(job *batchv1.Job) {
		if !served[job.Namespace] {
			job = &batchv1.Job{ObjectMeta: nameOf(&job.ObjectMeta, config.LabelProvisioner)}
		}
		all = append(all, cut.Object(job).(*batchv1.Job))
	})
	if err != nil {
		return fmt.Errorf("list the Jobs: %w", err)
	}
	s.Jobs, s.OtherJobs, s.UnservedJobs = split(all, a.Provisioner, served)
	var pods []*corev1.Pod
	err = admin.Each(ctx, a.Client.CoreV1().Pods(metav1.NamespaceAll).List, mine, func(pod *corev1.Pod) {
		if !served[pod.Namespace] {
			pod = &corev1.Pod{ObjectMeta: nameOf(&pod.ObjectMeta, config.LabelProvisioner)}
		}
		kept := cut.Pod(pod)
		kept.Finalizers = slices.Clone(pod.Finalizers[:min(len(pod.Finalizers), mostFinalizers)]) // a command names the place of one
		pods = append(pods, kept)
	})
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	s.Pods, _, s.UnservedPods = split(pods, a.Provisioner, served)
	return nil
}

// mostFinalizers is how many finalizers of a pod are kept. Its kubelet may write any number.
const mostFinalizers = 10

// split returns the objects of a provisioner's dispatcher in namespaces that are served, those of other
// provisioners, and those that are its dispatcher's by their label alone.
func split[T metav1.Object](all []T, provisioner string, served map[string]bool) (own, others, unserved []T) {
	for _, obj := range all {
		switch isOther := config.IsOfAnotherProvisioner(obj.GetLabels(), provisioner); {
		case isOther: // of one in a namespace that is not served nothing is kept that could stand for a volume
			others = append(others, obj)
		case served[obj.GetNamespace()]:
			own = append(own, obj)
		default:
			unserved = append(unserved, obj)
		}
	}
	return own, others, unserved
}

// PrintFindings writes a line for each finding, and below it the command that ends it.
func PrintFindings(to io.Writer, found []audit.Finding) error {
	for _, f := range found {
		about := f.Object
		if f.Age > 0 {
			about += ", " + f.Age.Truncate(time.Second).String() + " old"
		}
		if f.Size > 0 {
			about += ", " + resource.NewQuantity(f.Size, resource.BinarySI).String()
		}
		if _, err := fmt.Fprintf(to, "%s: %s: %s\n    %s\n", f.Kind, about, f.Why, f.Fix); err != nil {
			return err
		}
	}
	return nil
}
