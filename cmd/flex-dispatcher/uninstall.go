package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
)

// uninstall is the command that removes every finalizer, so that the namespaces can be deleted.
func uninstall() *cobra.Command {
	s, yes := &settings{}, false
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "Say what would stay behind in the storage, and with --yes release every finalizer",
		Long: "uninstall lists every PersistentVolume and Job that carries a finalizer of the dispatcher. With --yes it takes\n" +
			"the finalizers off: run it after the dispatcher's Deployment has been deleted, and before its namespaces are.\n" +
			"Claims stay bound, and volumes usable as long as the namespaces of their Secrets exist; but nobody deletes a volume from\n" +
			"the storage any more.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := s.connectAsAdmin()
			if err != nil {
				return err
			}
			client, err := kubernetes.NewForConfig(cfg)
			if err != nil {
				return fmt.Errorf("make a client: %w", err)
			}
			held, err := admin.Survey(cmd.Context(), client, s.controller.Provisioner)
			if err != nil {
				return err
			}
			if err := held.Print(cmd.OutOrStdout()); err != nil || held.IsEmpty() {
				return err
			}
			if !yes {
				return errors.New("nothing was changed: run it again with --yes to release them")
			}
			return held.Release(cmd.Context(), client)
		},
	}
	cmd.Flags().StringVar(&s.kubeconfig, "kubeconfig", "", adminKubeconfig)
	cmd.Flags().StringVar(&s.controller.Provisioner, "provisioner-name", contract.ProvisionerName, "the provisioner that StorageClasses name; what is held for another stays held")
	cmd.Flags().BoolVar(&yes, "yes", false, "release the finalizers")
	return cmd
}
