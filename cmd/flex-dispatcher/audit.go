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
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/audit/run"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
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
		Short: "Look for volumes, PersistentVolumes, Secrets and records that stand for nothing",
		Long: "audit compares claims, PersistentVolumes, Secrets, Jobs and pods with each other, and with --storage with what is in the storage.\n" +
			"It prints what is wrong, since when, how large its volume is, and the command that ends it. It changes nothing without --fix. It ends with 1 if it\n" +
			"has found something, and with 2 if it could not look at everything, could not delete what --fix names, or was interrupted. Objects that are younger\n" +
			"than a quarter of an hour are left out: they may still be at work. With --storage a Job with the class's own login lists what its storage has.",
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
	flags.StringVar(&a.controller.Provisioner, "provisioner-name", contract.ProvisionerName, "the provisioner that StorageClasses name")
	flags.StringVar(&a.namespace, "namespace", configNamespace, "namespace of configs, as the dispatcher has it")
	flags.StringVar(&a.controller.KubeAPI, "kube-api", "https://kubernetes.default.svc", "the API server's URL that images are given, as the dispatcher has it")
	flags.StringArrayVar(&a.files, "volumes", nil, "CLASS=FILE: what the verb list of the class's image has printed; may be repeated")
	flags.StringSliceVar(&a.storage, "storage", nil, "list the storage of these classes, CLASS,CLASS; without a value of all classes whose config has the verb list")
	flags.Lookup("storage").NoOptDefVal = all
	flags.StringSliceVar(&a.fix, "fix", nil, "delete these volumes, as the storage names them, if they stand for nothing and bear this cluster's UID; without a value all that do")
	flags.Lookup("fix").NoOptDefVal = all
	flags.BoolVar(&a.watch, "watch", false, "look again and again, log each finding once, and serve gauges of them")
	flags.DurationVar(&a.interval, "interval", time.Hour, "with --watch: the pause between two looks")
	flags.StringVar(&a.listen, "listen", ":8080", "with --watch: address of /metrics, /healthz and /readyz")
	flags.DurationVar(&a.timeout, "timeout", 15*time.Minute, "how long one Job may take, with its start")
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
		return errors.New("--fix needs --storage: only a volume that has just been listed is deleted")
	case len(a.files) > 0:
		return errors.New("--fix and --volumes: only a volume that has just been listed is deleted, and a file was written before")
	case a.watch:
		return errors.New("--fix and --watch: a volume is deleted only when an administrator has looked")
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
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%d PersistentVolumes, %d Secrets, %d Jobs and %d listed storages: nothing is wrong\n",
		len(l.State.PVs), len(l.State.Secrets), len(l.State.Jobs), len(l.State.Volumes))
	return err
}

// auditor connects to the cluster.
func (a *audited) auditor(cmd *cobra.Command) (*run.Auditor, error) {
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
		Client: client, Objects: objects, Clock: clock.RealClock{}, Provisioner: a.controller.Provisioner, Namespace: a.namespace,
		Cluster: run.Cluster{KubeAPI: a.controller.KubeAPI, UID: uid}, Timeout: a.timeout,
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
			return out, fmt.Errorf("--volumes=%s: it is not CLASS=FILE", list)
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
