package plugin

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/flex-provisioner/flex-provisioner/audit/run"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
)

// inCluster is the API server's URL in every cluster, for Jobs that list a storage.
const inCluster = "https://kubernetes.default.svc"

func auditCommand() *cobra.Command {
	c, a := &connection{}, &run.Command{}
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Find orphaned volumes, PersistentVolumes, Secrets and Jobs",
		Long: "audit does what flex-dispatcher audit does, with the namespaces and permissions of the\n" +
			"dispatcher's Deployment. It prints each finding with the command that corrects it. With\n" +
			"--storage it also lists storages, by Jobs. Without --fix it changes nothing.",
		Example: "  kubectl flex audit\n  kubectl flex audit --storage=gold\n" +
			"  kubectl flex audit --storage=gold --fix=VOLUME",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.Check(); err != nil {
				return err
			}
			auditor, err := c.auditor(cmd)
			if err != nil {
				return err
			}
			auditor.Timeout = a.Timeout
			storages, err := a.Storages()
			if err != nil {
				return err
			}
			return a.LookOnce(cmd, auditor, storages)
		},
	}
	c.addFlags(cmd.Flags())
	a.AddFlags(cmd.Flags())
	return cmd
}

// auditor returns an Auditor of the claims that the dispatcher serves.
func (c *connection) auditor(cmd *cobra.Command) (*run.Auditor, error) {
	at, err := c.at()
	if err != nil {
		return nil, err
	}
	cfg, _, err := c.connect()
	if err != nil {
		return nil, err
	}
	client, _, err := clients(cfg)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(cmd.Context(), timeout)
	defer stop()
	d, err := Find(ctx, client, at)
	if err != nil {
		return nil, err
	}
	d.Serving.KubeAPI = cmp.Or(d.Serving.KubeAPI, inCluster)
	return run.Connect(ctx, cfg, d.Serving, d.lease())
}

func uninstallCommand() *cobra.Command {
	c, provisioner, yes := &connection{}, "", false
	cmd := &cobra.Command{
		Use:   "uninstall",
		Short: "List the volumes that remain in the storage, and with --yes remove every finalizer",
		Long: "uninstall does what flex-dispatcher uninstall does. Run it after the dispatcher's\n" +
			"Deployment was deleted, and before you delete its namespaces.",
		Example: "  kubectl flex uninstall\n  kubectl flex uninstall --yes",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, _, err := c.connect()
			if err != nil {
				return err
			}
			client, _, err := clients(cfg)
			if err != nil {
				return err
			}
			if err := admin.Uninstall(cmd.Context(), client, provisioner, yes, cmd.OutOrStdout()); err != nil {
				return fmt.Errorf("uninstall: %w", err)
			}
			return nil
		},
	}
	c.addFlags(cmd.Flags())
	cmd.Flags().StringVar(&provisioner, "provisioner-name", contract.ProvisionerName, "provisioner name in StorageClasses; finalizers of another provisioner are kept")
	cmd.Flags().BoolVar(&yes, "yes", false, "remove the finalizers")
	return cmd
}
