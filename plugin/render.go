package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	storagehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/act"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

// What a claim of a file has if it does not say so.
const (
	exampleUID  = "00000000-0000-4000-8000-%012d"
	exampleNode = "node1"
)

func renderCommand() *cobra.Command {
	files := &Files{}
	cmd := &cobra.Command{
		Use:   "render -f FILE|DIRECTORY...",
		Short: "Print the Job that would provision a claim, from files",
		Long: "render reads PersistentVolumeClaims and the StorageClass, ConfigMap and ServiceAccount\n" +
			"that serve each, as validate does, and prints the Job of its first attempt. The container's\n" +
			"request.json and pv.json are annotations of the pod. It needs no cluster. A claim without a\n" +
			"UID, or without a selected node where it needs one, gets an example.",
		Example: "  kubectl flex render -f my-filer.yaml -f claim.yaml",
		Args:    noFileButByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rendered, err := Render(cmd.Context(), files)
			if err != nil {
				return err
			}
			for i, job := range rendered {
				text, err := yaml.Marshal(job)
				if err != nil {
					return fmt.Errorf("print the Job: %w", err)
				}
				if i > 0 {
					text = append([]byte("---\n"), text...)
				}
				if _, err := cmd.OutOrStdout().Write(text); err != nil {
					return err
				}
			}
			return nil
		},
	}
	files.addFlags(cmd)
	return cmd
}

// Render returns the Job of the first attempt for each claim of files.
func Render(ctx context.Context, files *Files) ([]*batchv1.Job, error) {
	m, err := files.read()
	if err != nil {
		return nil, err
	}
	if len(m.claims) == 0 {
		return nil, errors.New("the files have no PersistentVolumeClaim that requests a class. " +
			"Remedy: name a file with one by --filename, too")
	}
	caches, err := m.caches()
	if err != nil {
		return nil, err
	}
	d := &Dispatcher{Clock: clock.RealClock{}, Serving: m.serving, caches: caches}
	var out []*batchv1.Job
	for _, claim := range m.claims {
		job, err := d.render(ctx, claim, m)
		if err != nil {
			return nil, fmt.Errorf("%s: the claim %s: %w", claim.at, quote.Name(claim.Name), err)
		}
		out = append(out, job)
	}
	return out, nil
}

// render returns the Job of the first attempt for a claim.
func (d *Dispatcher) render(
	ctx context.Context, claim claimInFile, m *manifests,
) (*batchv1.Job, error) {
	if err := m.checkServed(claim); err != nil {
		return nil, err
	}
	resolver, err := d.resolver()
	if err != nil {
		return nil, err
	}
	observer := &observe.Observer{Clock: d.Clock, AheadOfBinder: true, Resolver: resolver}
	o, err := observer.Observe(ctx, d.caches.Cached(), claim.UID, observe.Hint{})
	switch {
	case err != nil:
		return nil, err
	case o.View.Claim != decide.ClaimPending:
		return nil, errors.New("it is not to be provisioned: it is bound, or being deleted, or another " +
			"program serves it. Remedy: leave only its name, namespace and spec, without volumeName")
	case o.View.Provision.Problem != nil:
		return nil, errors.New(o.View.Provision.Problem.Note.String())
	}
	actor := &act.Actor{
		Clock: d.Clock, Provisioner: d.Serving.Provisioner, KubeAPI: d.Serving.KubeAPI,
		Allowed: resolver.Allowed,
	}
	plan, err := actor.Plan(act.Member{O: o, Launch: decide.Launch{Verb: contract.Provision, Number: 1, Attempt: 1, NothingBefore: true}})
	if err != nil {
		return nil, err
	}
	job, err := jobs.Build(plan)
	if err != nil {
		return nil, fmt.Errorf("build the Job: %w", err)
	}
	job.TypeMeta = metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job"}
	return job, nil
}

// checkServed returns why a claim has no class of the files, or a class whose config is not read.
func (m *manifests) checkServed(claim claimInFile) error {
	name := storagehelpers.GetPersistentVolumeClaimClass(claim.PersistentVolumeClaim)
	if name == "" {
		return errors.New("it names no class. Remedy: add spec.storageClassName")
	}
	i := slices.IndexFunc(m.classes, func(c *storagev1.StorageClass) bool { return c.Name == name })
	if i < 0 {
		return fmt.Errorf("the files have no StorageClass %s. Remedy: name its file by --filename, too",
			quote.Name(name))
	}
	for _, cm := range m.configs {
		if serves(cm.ConfigMap, m.classes[i]) {
			if err := m.unserved(cm.Namespace); err != nil {
				return fmt.Errorf("%s: %w", cm.at, err)
			}
			if faults := faultsOfClass(m.classes[i], cm, m.serving); len(faults) > 0 {
				return fmt.Errorf("%s: %s", cm.at, strings.Join(faults, ". "))
			}
		}
	}
	return nil
}

// caches returns caches with what the files have, and a node that the scheduler may have selected
// for the claims.
func (m *manifests) caches() (*cluster.Caches, error) {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: exampleNode, Labels: map[string]string{
		corev1.LabelHostname: exampleNode, corev1.LabelOSStable: "linux",
	}}}
	objects, namespaces := []metav1.Object{node}, m.serving.Namespaces()
	for i, claim := range m.claims {
		complete(claim.PersistentVolumeClaim, i)
		objects = append(objects, claim.PersistentVolumeClaim)
	}
	for _, class := range m.classes {
		objects = append(objects, class)
	}
	for _, cm := range m.configs {
		if slices.Contains(namespaces, cm.Namespace) {
			objects = append(objects, cm.ConfigMap)
		}
	}
	for _, account := range m.accounts {
		if account.Labels[contract.LabelProvisioner] == "true" && slices.Contains(namespaces, account.Namespace) {
			objects = append(objects, account)
		}
	}
	return cluster.NewStatic(nil, namespaces, objects...)
}

// complete gives a claim of a file what it has in a cluster when it is to be provisioned.
func complete(claim *corev1.PersistentVolumeClaim, i int) {
	if claim.UID == "" {
		claim.UID = types.UID(fmt.Sprintf(exampleUID, i+1))
	}
	if claim.Namespace == "" {
		claim.Namespace = metav1.NamespaceDefault
	}
	if claim.Annotations[storagehelpers.AnnSelectedNode] == "" {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, storagehelpers.AnnSelectedNode, exampleNode)
	}
}
