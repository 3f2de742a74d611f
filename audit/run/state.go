package run

import (
	"context"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
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
	secrets, err := a.Objects.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).List(ctx, metav1.ListOptions{LabelSelector: contract.LabelClaimUID})
	if err != nil {
		return s, fmt.Errorf("list the metadata of the Secrets: %w", err)
	}
	for _, secret := range secrets.Items {
		s.Secrets = append(s.Secrets, secret.ObjectMeta)
	}
	return s, nil
}

func (a *Auditor) readClaimsAndPVs(ctx context.Context, s *audit.State) error {
	claims, err := a.Client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the PersistentVolumeClaims: %w", err)
	}
	s.Claims = pointers(claims.Items)
	all, err := a.Client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the PersistentVolumes: %w", err)
	}
	for _, pv := range pointers(all.Items) {
		if pv.Annotations[contract.AnnClaimUID] == "" || pvs.OfAnotherProvisioner(pv.Annotations, a.Provisioner) {
			s.Others = append(s.Others, pv)
		} else {
			s.PVs = append(s.PVs, pv)
		}
	}
	return nil
}

// readRuns reads the Jobs and pods of dispatchers, after the PVs that name some of their namespaces.
func (a *Auditor) readRuns(ctx context.Context, s *audit.State) error {
	served, err := a.served(ctx, s)
	if err != nil {
		return err
	}
	mine := metav1.ListOptions{LabelSelector: config.SelectManaged}
	jobs, err := a.Client.BatchV1().Jobs(metav1.NamespaceAll).List(ctx, mine)
	if err != nil {
		return fmt.Errorf("list the Jobs: %w", err)
	}
	s.Jobs, s.OtherJobs, s.UnservedJobs = split(pointers(jobs.Items), a.Provisioner, served)
	pods, err := a.Client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, mine)
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	s.Pods, _, s.UnservedPods = split(pointers(pods.Items), a.Provisioner, served)
	return nil
}

// split returns the objects of a provisioner's dispatcher and those of others, in namespaces that are
// served, and those that are its dispatcher's by their label alone.
func split[T metav1.Object](all []T, provisioner string, served map[string]bool) (own, others, unserved []T) {
	for _, obj := range all {
		switch isOther := config.IsOfAnotherProvisioner(obj.GetLabels(), provisioner); {
		case isOther && served[obj.GetNamespace()]:
			others = append(others, obj)
		case isOther:
		case served[obj.GetNamespace()]:
			own = append(own, obj)
		default:
			unserved = append(unserved, obj)
		}
	}
	return own, others, unserved
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
