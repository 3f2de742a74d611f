package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/flex-provisioner/flex-provisioner/audit/run"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/options"
)

// auditName is the name of the command audit.
const auditName = "audit"

// audited are the flags of the command audit.
type audited struct {
	settings

	run.Command

	watch    bool
	interval time.Duration
}

// auditCommand is the command that looks for what stands for nothing.
func auditCommand() *cobra.Command {
	a := &audited{}
	cmd := &cobra.Command{
		Use:   auditName,
		Short: "Find orphaned volumes, PersistentVolumes, Secrets and Jobs",
		Long: "audit compares claims, PersistentVolumes, Secrets, Jobs and pods with each other, and with --storage also with the volumes in the storage.\n" +
			"It prints each finding with its age, the size of the volume, and the command that corrects it. Without --fix it changes nothing. The exit code is 1 if\n" +
			"there are findings, and 2 if something could not be read, a volume of --fix could not be deleted, or the command was interrupted. Objects younger\n" +
			"than 15 minutes are skipped, since they may still be in progress. With --storage a Job with the login of the class lists the volumes in its storage.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			err := a.run(cmd)
			if a.watch {
				err = endsWhenAsked(cmd.Context(), err)
			}
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&a.kubeconfig, "kubeconfig", "", adminKubeconfig)
	flags.StringVar(&a.Provisioner, "provisioner-name", contract.ProvisionerName, "provisioner name in StorageClasses")
	flags.StringVar(&a.Namespace, "namespace", options.ConfigNamespace, "namespace of configs, the same as that of the dispatcher")
	flags.StringSliceVar(&a.ConfigNamespaces, "config-namespaces", nil, "additional namespaces of configs, also those of other dispatchers; only there Jobs count as runs")
	flags.StringVar(&a.leaseNamespace, options.FlagElectNamespace, options.SystemNamespace, "namespace of the dispatcher's leader election lease, which names its config namespaces")
	a.AddAllow(flags)
	a.AddScriptImage(flags)
	flags.StringVar(&a.KubeAPI, "kube-api", "https://kubernetes.default.svc", "URL of the API server for images, the same as that of the dispatcher")
	a.AddFlags(flags)
	flags.BoolVar(&a.watch, "watch", false, "repeat the audit, log each finding once, and serve gauges of the findings")
	flags.DurationVar(&a.interval, "interval", time.Hour, "with --watch: interval between two audits")
	flags.StringVar(&a.listen, "listen", ":8080", "with --watch: address of /metrics, /healthz and /readyz")
	return cmd
}

// run looks once or, with --watch, again and again.
func (a *audited) run(cmd *cobra.Command) error {
	if err := a.check(); err != nil {
		return err
	}
	auditor, err := a.auditor(cmd)
	if err != nil {
		return err
	}
	storages, err := a.Storages()
	if err != nil {
		return err
	}
	if a.watch {
		return a.watchAll(cmd.Context(), auditor, storages)
	}
	return a.LookOnce(cmd, auditor, storages)
}

// check returns why these flags cannot be used together, or nil.
func (a *audited) check() error {
	if a.watch && len(a.Fix) > 0 {
		return errors.New("--fix cannot be used with --watch: an administrator must check each deletion")
	}
	return a.Check()
}

// watchAll looks until it is asked to end.
func (a *audited) watchAll(ctx context.Context, auditor *run.Auditor, storages run.Storages) error {
	var ready atomic.Bool
	ready.Store(true)
	gauges := &run.Gauges{}
	processMetrics{}.CustomMustRegister(gauges)
	if err := a.listenHealth(ctx, &ready); err != nil {
		return err
	}
	auditor.Watch(ctx, storages, a.interval, gauges)
	return nil
}

// auditor connects to the cluster.
func (a *audited) auditor(cmd *cobra.Command) (*run.Auditor, error) {
	cfg, err := a.connectAsAdmin()
	if err != nil {
		return nil, err
	}
	rest.AddUserAgent(cfg, "flex-dispatcher-audit")
	auditor, err := run.Connect(cmd.Context(), cfg, a.Serving, types.NamespacedName{Namespace: a.leaseNamespace, Name: options.Name})
	if err != nil {
		return nil, err
	}
	auditor.Timeout = a.Timeout
	return auditor, nil
}
