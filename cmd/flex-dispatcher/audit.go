package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/audit"
)

// auditCommand is the command that looks for what stands for nothing.
func auditCommand() *cobra.Command {
	s, lists := &settings{}, []string{}
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Look for volumes, PersistentVolumes, Secrets and records that stand for nothing",
		Long: "audit compares claims, PersistentVolumes, Secrets, Jobs and pods with each other, and with --volumes with what is in the storage.\n" +
			"It prints what is wrong, since when, how large its volume is, and the command that ends it. It changes nothing. It ends with 1 if it has\n" +
			"found something. Objects that are younger than a quarter of an hour are left out: they may still be at work. A list may also hold volumes of\n" +
			"another cluster that uses the same storage.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			state, err := s.readState(cmd, lists)
			if err != nil {
				return err
			}
			found := audit.Check(state)
			if err := admin.PrintFindings(cmd.OutOrStdout(), found); err != nil {
				return err
			}
			if len(found) > 0 {
				return fmt.Errorf("%d findings", len(found))
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%d PersistentVolumes, %d Secrets and %d Jobs: nothing is wrong\n", len(state.PVs), len(state.Secrets), len(state.Jobs))
			return err
		},
	}
	cmd.Flags().StringVar(&s.kubeconfig, "kubeconfig", "", "kubeconfig file; empty: the pod's own ServiceAccount")
	cmd.Flags().StringVar(&s.controller.Provisioner, "provisioner-name", contract.ProvisionerName, "the provisioner that StorageClasses name")
	cmd.Flags().StringArrayVar(&lists, "volumes", nil, "CLASS=FILE: what the verb list of the class's image has printed; may be repeated")
	return cmd
}

// readState reads the cluster, and the lists of volumes.
func (s *settings) readState(cmd *cobra.Command, lists []string) (audit.State, error) {
	cfg, err := s.connect()
	if err != nil {
		return audit.State{}, err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return audit.State{}, fmt.Errorf("make a client: %w", err)
	}
	objects, err := metadata.NewForConfig(cfg)
	if err != nil {
		return audit.State{}, fmt.Errorf("make a client: %w", err)
	}
	state, err := admin.ReadState(cmd.Context(), client, objects, s.controller.Provisioner, time.Now())
	if err != nil {
		return state, err
	}
	for _, list := range lists {
		class, name, ok := strings.Cut(list, "=")
		if !ok {
			return state, fmt.Errorf("--volumes=%s: it is not CLASS=FILE", list)
		}
		file, err := os.Open(name)
		if err != nil {
			return state, err
		}
		state.Volumes[class], err = admin.ReadVolumes(file)
		_ = file.Close() // it was only read
		if err != nil {
			return state, fmt.Errorf("--volumes=%s: %w", list, err)
		}
	}
	return state, nil
}
