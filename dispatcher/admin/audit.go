package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/audit"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
)

// ReadState reads what an audit judges: everything of a provisioner, in all namespaces. Of Secrets it reads the metadata only.
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
	s.PVs = slices.DeleteFunc(pointers(all.Items), func(pv *corev1.PersistentVolume) bool {
		return pv.Annotations[contract.AnnClaimUID] == "" || pvs.OfAnotherProvisioner(pv.Annotations, provisioner)
	})
	return nil
}

func readRuns(ctx context.Context, client kubernetes.Interface, provisioner string, s *audit.State) error {
	mine := metav1.ListOptions{LabelSelector: config.SelectManaged}
	jobs, err := client.BatchV1().Jobs(metav1.NamespaceAll).List(ctx, mine)
	if err != nil {
		return fmt.Errorf("list the Jobs: %w", err)
	}
	s.Jobs = slices.DeleteFunc(pointers(jobs.Items), func(job *batchv1.Job) bool { return isRunOfAnother(job.Spec.Template.ObjectMeta, provisioner) })
	pods, err := client.CoreV1().Pods(metav1.NamespaceAll).List(ctx, mine)
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	s.Pods = slices.DeleteFunc(pointers(pods.Items), func(pod *corev1.Pod) bool { return isRunOfAnother(pod.ObjectMeta, provisioner) })
	return nil
}

func pointers[T any](items []T) []*T {
	out := make([]*T, len(items))
	for i := range items {
		out[i] = &items[i]
	}
	return out
}

// ReadVolumes reads what an image has listed: a line of JSON for each volume.
func ReadVolumes(from io.Reader) ([]audit.Volume, error) {
	out := []audit.Volume{}
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		var listed struct {
			UID     string `json:"uid"`
			Volume  string `json:"volume"`
			SizeGiB int64  `json:"sizeGiB"`
		}
		if err := json.Unmarshal(lines.Bytes(), &listed); err != nil {
			return nil, fmt.Errorf("read the line %q of a list: %w", lines.Text(), err)
		}
		out = append(out, audit.Volume{UID: listed.UID, ID: listed.Volume, Size: listed.SizeGiB << 30})
	}
	return out, lines.Err()
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
