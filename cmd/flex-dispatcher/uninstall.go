package main

import (
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
		Short: "List the volumes that remain in the storage, and with --yes remove every finalizer",
		Long: "uninstall lists every PersistentVolume and Job with a finalizer of the dispatcher. With --yes it removes the\n" +
			"finalizers. Run it after the dispatcher's Deployment was deleted, and before you delete its namespaces.\n" +
			"Claims remain bound, and their volumes usable as long as the namespaces of their Secrets exist. Without the dispatcher,\n" +
			"no volume is deleted from the storage.",
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
			return admin.Uninstall(cmd.Context(), client, s.Provisioner, yes, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&s.kubeconfig, "kubeconfig", "", adminKubeconfig)
	cmd.Flags().StringVar(&s.Provisioner, "provisioner-name", contract.ProvisionerName, "provisioner name in StorageClasses; finalizers of another provisioner are kept")
	cmd.Flags().BoolVar(&yes, "yes", false, "remove the finalizers")
	return cmd
}
