package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
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
	"github.com/flex-provisioner/flex-provisioner/dispatcher/options"
)

// What a claim of a file has if it does not say so.
const (
	exampleUID  = types.UID("00000000-0000-4000-8000-000000000001")
	exampleNode = "node1"
)

func renderCommand() *cobra.Command {
	serving, files := options.Serving{}, []string{}
	cmd := &cobra.Command{
		Use:   "render -f FILE...",
		Short: "Print the Job that would provision a claim, from files",
		Long: "render reads a PersistentVolumeClaim and the StorageClass, ConfigMap and ServiceAccount that serve it, and prints the Job of its first attempt. The container's request.json and\n" +
			"pv.json are annotations of the pod. It needs no cluster. A claim without a UID, or without a selected node where it needs one, gets an example.",
		Example: "  kubectl flex render -f my-filer.yaml -f claim.yaml",
		Args:    noFileButByFlag,
		RunE: func(cmd *cobra.Command, _ []string) error {
			job, err := Render(cmd.Context(), files, cmd.InOrStdin(), serving)
			if err != nil {
				return err
			}
			text, err := yaml.Marshal(job)
			if err != nil {
				return fmt.Errorf("print the Job: %w", err)
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	addFiles(cmd, &files)
	serving.AddFlags(cmd.Flags())
	return cmd
}

// Render returns the Job of the first attempt for the claim of files, or of the standard input.
func Render(ctx context.Context, files []string, stdin io.Reader, serving options.Serving) (*batchv1.Job, error) {
	m, serving, err := readManifests(files, stdin, serving)
	if err != nil {
		return nil, err
	}
	if err := m.checkComplete(serving); err != nil {
		return nil, err
	}
	caches, err := m.caches(serving.Namespaces())
	if err != nil {
		return nil, err
	}
	d := &Dispatcher{Clock: clock.RealClock{}, Serving: serving, caches: caches}
	resolver, _, err := d.resolver()
	if err != nil {
		return nil, err
	}
	observer := &observe.Observer{Clock: d.Clock, AheadOfBinder: true, Resolver: resolver}
	o, err := observer.Observe(ctx, caches.Cached(), m.claim.UID, observe.Hint{})
	switch {
	case err != nil:
		return nil, err
	case o.View.Claim != decide.ClaimPending:
		return nil, fmt.Errorf("no StorageClass of the files with the provisioner %s has the name of the claim's class", serving.Provisioner)
	case o.View.Provision.Problem != nil:
		return nil, errors.New(o.View.Provision.Problem.Note.String())
	}
	actor := &act.Actor{Clock: d.Clock, Provisioner: serving.Provisioner, KubeAPI: serving.KubeAPI, Allowed: resolver.Allowed}
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

// checkComplete returns why no Job can be made of the files.
func (m *manifests) checkComplete(serving options.Serving) error {
	if m.claim == nil {
		return errors.New("no PersistentVolumeClaim is in the files")
	}
	for _, cm := range m.configs {
		if err := m.unserved(cm.ConfigMap, serving); err != nil {
			return fmt.Errorf("%s: %w", cm.file, err)
		}
	}
	return nil
}

// caches returns caches with what the files have, and a node that the scheduler may have selected
// for the claim.
func (m *manifests) caches(namespaces []string) (*cluster.Caches, error) {
	complete(m.claim)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: exampleNode, Labels: map[string]string{
		corev1.LabelHostname: exampleNode, corev1.LabelOSStable: "linux",
	}}}
	objects := []metav1.Object{m.claim, node}
	for _, class := range m.classes {
		objects = append(objects, class)
	}
	for _, cm := range m.configs {
		objects = append(objects, cm.ConfigMap)
	}
	for _, account := range m.accounts {
		if account.Labels[contract.LabelProvisioner] == "true" && slices.Contains(namespaces, account.Namespace) {
			objects = append(objects, account)
		}
	}
	return cluster.NewStatic(nil, namespaces, objects...)
}

// complete gives a claim of a file what it has in a cluster when it is to be provisioned.
func complete(claim *corev1.PersistentVolumeClaim) {
	if claim.UID == "" {
		claim.UID = exampleUID
	}
	if claim.Namespace == "" {
		claim.Namespace = metav1.NamespaceDefault
	}
	if claim.Annotations[storagehelpers.AnnSelectedNode] == "" {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, storagehelpers.AnnSelectedNode, exampleNode)
	}
}
