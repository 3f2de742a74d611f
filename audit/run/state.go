package run

import (
	"context"
	"fmt"
	"io"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

// ReadState reads what an audit judges: everything of a provisioner, in all namespaces. Of Secrets
// it reads the metadata only.
func ReadState(ctx context.Context, client kubernetes.Interface, objects metadata.Interface, provisioner string, now time.Time) (audit.State, error) {
	s := audit.State{Now: now, Volumes: map[string][]audit.Volume{}}
	if err := readClaimsAndPVs(ctx, client, provisioner, &s); err != nil {
		return s, err
	}
	if err := readRuns(ctx, client, provisioner, &s); err != nil {
		return s, err
	}
	secrets, err := objects.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).List(ctx, metav1.ListOptions{LabelSelector: contract.LabelClaimUID})
	if err != nil {
		return s, fmt.Errorf("list the metadata of the Secrets: %w", err)
	}
	for _, secret := range secrets.Items {
		s.Secrets = append(s.Secrets, secret.ObjectMeta)
	}
	return s, nil
}

func readClaimsAndPVs(ctx context.Context, client kubernetes.Interface, provisioner string, s *audit.State) error {
	claims, err := client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the PersistentVolumeClaims: %w", err)
	}
	s.Claims = pointers(claims.Items)
	all, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the PersistentVolumes: %w", err)
	}
	for _, pv := range pointers(all.Items) {
		if pv.Annotations[contract.AnnClaimUID] == "" || pvs.OfAnotherProvisioner(pv.Annotations, provisioner) {
			s.Others = append(s.Others, pv)
		} else {
			s.PVs = append(s.PVs, pv)
		}
	}
	return nil
}

func readRuns(ctx context.Context, client kubernetes.Interface, provisioner string, s *audit.State) error {
	mine := metav1.ListOptions{LabelSelector: config.SelectManaged}
	jobs, err := client.BatchV1().Jobs(metav1.NamespaceAll).List(ctx, mine)
	if err != nil {
		return fmt.Errorf("list the Jobs: %w", err)
	}
	for _, job := range pointers(jobs.Items) {
		if config.IsOfAnotherProvisioner(job.Labels, provisioner) {
			s.OtherJobs = append(s.OtherJobs, job)
		} else {
			s.Jobs = append(s.Jobs, job)
		}
	}
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, mine)
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	s.Pods = slices.DeleteFunc(pointers(pods.Items), func(pod *corev1.Pod) bool { return config.IsOfAnotherProvisioner(pod.Labels, provisioner) })
	return nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
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
