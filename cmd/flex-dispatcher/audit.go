package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/audit/run"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/options"
)

// auditName is the name of the command audit.
const auditName = "audit"

// all is the value of a flag that is given without one.
const all = "*"

// findings is the error of an audit that has looked at everything, and has found so many things.
type findings int

func (n findings) Error() string { return fmt.Sprintf("%d findings", int(n)) }

// audited are the flags of the command audit.
type audited struct {
	settings

	files, storage, fix []string
	timeout             time.Duration
	watch               bool
	interval            time.Duration
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
	flags.StringVar(&a.leaseNamespace, "leader-elect-resource-namespace", options.SystemNamespace, "namespace of the dispatcher's leader election lease, which names its config namespaces")
	a.AddAllow(flags)
	flags.StringVar(&a.controller.KubeAPI, "kube-api", "https://kubernetes.default.svc", "URL of the API server for images, the same as that of the dispatcher")
	flags.StringArrayVar(&a.files, "volumes", nil, "CLASS=FILE: output of the verb list of the class's image; may be repeated")
	flags.StringSliceVar(&a.storage, "storage", nil, "list the storage of these classes, CLASS,CLASS; without a value, of all classes whose config has the verb list")
	flags.Lookup("storage").NoOptDefVal = all
	flags.StringSliceVar(&a.fix, "fix", nil, "delete these volumes, by their names in the storage, if they are orphaned and have this cluster's UID; without a value, all such volumes")
	flags.Lookup("fix").NoOptDefVal = all
	flags.BoolVar(&a.watch, "watch", false, "repeat the audit, log each finding once, and serve gauges of the findings")
	flags.DurationVar(&a.interval, "interval", time.Hour, "with --watch: interval between two audits")
	flags.StringVar(&a.listen, "listen", ":8080", "with --watch: address of /metrics, /healthz and /readyz")
	flags.DurationVar(&a.timeout, "timeout", 15*time.Minute, "timeout of one Job, including its start")
	return cmd
}

// run looks once or, with --watch, again and again.
func (a *audited) run(cmd *cobra.Command) error {
	if err := a.checkFix(); err != nil {
		return err
	}
	auditor, err := a.auditor(cmd)
	if err != nil {
		return err
	}
	storages, err := a.storages()
	if err != nil {
		return err
	}
	if a.watch {
		return a.watchAll(cmd.Context(), auditor, storages)
	}
	return a.lookOnce(cmd, auditor, storages)
}

// checkFix returns why volumes are not deleted with these flags, or nil.
func (a *audited) checkFix() error {
	switch {
	case len(a.fix) == 0:
		return nil
	case len(a.storage) == 0:
		return errors.New("--fix needs --storage: it deletes only a volume that the storage has just listed")
	case len(a.files) > 0:
		return errors.New("--fix cannot be used with --volumes: it deletes only a volume that the storage has just listed, and a file is older")
	case a.watch:
		return errors.New("--fix cannot be used with --watch: an administrator must check each deletion")
	default:
		return nil
	}
}

// lookOnce looks once, and a second time after what it has fixed.
func (a *audited) lookOnce(cmd *cobra.Command, auditor *run.Auditor, storages run.Storages) error {
	l, err := auditor.Look(cmd.Context(), storages)
	if err != nil {
		return err
	}
	err = report(cmd, l)
	if len(a.fix) == 0 {
		return withFindings(l, err)
	}
	fixed := a.fixAll(cmd, auditor, l)
	if l, err = auditor.Look(cmd.Context(), storages); err != nil {
		return errors.Join(fixed, err)
	}
	return withFindings(l, errors.Join(fixed, report(cmd, l)))
}

// withFindings adds to an error how many findings there are.
func withFindings(l run.Look, err error) error {
	found := findings(len(l.Found))
	switch {
	case found == 0:
		return err
	case err != nil:
		return fmt.Errorf("%s, and %w", found.Error(), err) // and not findings alone
	default:
		return found
	}
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

// fixAll deletes what stands for nothing.
func (a *audited) fixAll(cmd *cobra.Command, auditor *run.Auditor, l run.Look) error {
	only := a.fix
	if slices.Contains(only, all) {
		only = nil
	}
	return auditor.Fix(cmd.Context(), l, only, func(format string, args ...any) { cmd.PrintErrf(format+"\n", args...) })
}

// report prints what an audit has found, and returns an error if a storage could not be listed.
func report(cmd *cobra.Command, l run.Look) error {
	for _, err := range slices.Concat(l.Notes, l.Faults) {
		if _, err := fmt.Fprintln(cmd.ErrOrStderr(), err); err != nil {
			return err
		}
	}
	if err := run.PrintFindings(cmd.OutOrStdout(), l.Found); err != nil {
		return err
	}
	if n := len(l.Faults); n > 0 {
		return fmt.Errorf("%d storages could not be listed", n)
	}
	if len(l.Found) > 0 {
		return nil
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%d PersistentVolumes, %d Secrets, %d Jobs and %d listed storages: no findings\n",
		len(l.State.PVs), len(l.State.Secrets), len(l.State.Jobs), len(l.State.Volumes))
	return err
}

// auditor connects to the cluster.
func (a *audited) auditor(cmd *cobra.Command) (*run.Auditor, error) {
	allowed, err := a.Allowances()
	if err != nil {
		return nil, err
	}
	cfg, err := a.connectAsAdmin()
	if err != nil {
		return nil, err
	}
	rest.AddUserAgent(cfg, "flex-dispatcher-audit")
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	objects, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	uid, err := admin.ClusterUID(cmd.Context(), client)
	return &run.Auditor{
		Client: client, Objects: objects, Clock: clock.RealClock{}, Provisioner: a.Provisioner, Namespace: a.Namespace,
		ConfigNamespaces: a.ConfigNamespaces, Lease: types.NamespacedName{Namespace: a.leaseNamespace, Name: options.Name},
		Allowed: allowed, Cluster: run.Cluster{KubeAPI: a.controller.KubeAPI, UID: uid}, Timeout: a.timeout,
	}, err
}

// storages reads which storages are to be listed, and the lists in files.
func (a *audited) storages() (run.Storages, error) {
	out := run.Storages{Files: map[string][]audit.Volume{}, All: slices.Contains(a.storage, all)}
	if !out.All {
		out.Classes = a.storage
	}
	for _, list := range a.files {
		class, name, ok := strings.Cut(list, "=")
		if !ok {
			return out, fmt.Errorf("--volumes=%s: must have the form CLASS=FILE", list)
		}
		file, err := os.Open(name)
		if err != nil {
			return out, err
		}
		out.Files[class], err = run.ReadVolumes(file)
		_ = file.Close() // it was only read
		if err != nil {
			return out, fmt.Errorf("--volumes=%s: %w", list, err)
		}
	}
	return out, nil
}
