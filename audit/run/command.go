package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/options"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

// DefaultTimeout is that of one Job of an audit.
const DefaultTimeout = 15 * time.Minute

// all is the value of a flag that is given without one.
const all = "*"

// FindingsError is the error of an audit that has looked at everything, and has found so many things.
type FindingsError int

func (n FindingsError) Error() string { return fmt.Sprintf("%d findings", int(n)) }

// Command are the flags of an audit, of whichever program it is a command.
type Command struct {
	Files, Storage, Fix []string
	Timeout             time.Duration
}

// AddFlags adds the flags.
func (a *Command) AddFlags(flags *pflag.FlagSet) {
	flags.StringArrayVar(&a.Files, "volumes", nil, "CLASS=FILE: output of the verb list of the class's image; may be repeated")
	flags.StringSliceVar(&a.Storage, "storage", nil, "list the storage of these classes, CLASS,CLASS; without a value, of all classes whose config has the verb list")
	flags.Lookup("storage").NoOptDefVal = all
	flags.StringSliceVar(&a.Fix, "fix", nil, "delete these volumes, by their names in the storage, if they are orphaned and have this cluster's UID; without a value, all such volumes")
	flags.Lookup("fix").NoOptDefVal = all
	flags.DurationVar(&a.Timeout, "timeout", DefaultTimeout, "timeout of one Job, including its start")
}

// Check returns why volumes are not deleted with these flags, or nil.
func (a *Command) Check() error {
	switch {
	case len(a.Fix) == 0:
		return nil
	case len(a.Storage) == 0:
		return errors.New("--fix needs --storage: it deletes only a volume that the storage has just listed")
	case len(a.Files) > 0:
		return errors.New("--fix cannot be used with --volumes: it deletes only a volume that the storage has just listed, and a file is older")
	default:
		return nil
	}
}

// LookOnce looks once, and a second time after what it has fixed.
func (a *Command) LookOnce(cmd *cobra.Command, auditor *Auditor, storages Storages) error {
	l, err := auditor.Look(cmd.Context(), storages)
	if err != nil {
		return err
	}
	err = report(cmd, l)
	if len(a.Fix) == 0 {
		return withFindings(l, err)
	}
	fixed := a.fixAll(cmd, auditor, l)
	if l, err = auditor.Look(cmd.Context(), storages); err != nil {
		return errors.Join(fixed, err)
	}
	return withFindings(l, errors.Join(fixed, report(cmd, l)))
}

// withFindings adds to an error how many findings there are.
func withFindings(l Look, err error) error {
	found := FindingsError(len(l.Found))
	switch {
	case found == 0:
		return err
	case err != nil:
		return fmt.Errorf("%s, and %w", found.Error(), err) // and not findings alone
	default:
		return found
	}
}

// fixAll deletes what stands for nothing.
func (a *Command) fixAll(cmd *cobra.Command, auditor *Auditor, l Look) error {
	only := a.Fix
	if slices.Contains(only, all) {
		only = nil
	}
	return auditor.Fix(cmd.Context(), l, only, func(format string, args ...any) { cmd.PrintErrf(format+"\n", args...) })
}

// report prints what an audit has found, and returns an error if a storage could not be listed.
func report(cmd *cobra.Command, l Look) error {
	for _, err := range slices.Concat(l.Notes, l.Faults) {
		if _, err := fmt.Fprintln(cmd.ErrOrStderr(), quote.Line(err.Error())); err != nil {
			return err
		}
	}
	if err := PrintFindings(cmd.OutOrStdout(), l.Found); err != nil {
		return err
	}
	if n := len(l.Faults); n > 0 {
		return fmt.Errorf("%d storages could not be listed", n)
	}
	if len(l.Found) > 0 {
		return nil
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%d PersistentVolumes, %d Secrets, %d Jobs and %d listed storages: no findings\n",
		len(l.State.PVs), len(l.State.Secrets), len(l.State.Jobs), len(l.State.Volumes)+len(l.State.OnNodes))
	return err
}

// Storages reads which storages are to be listed, and the lists in files.
func (a *Command) Storages() (Storages, error) {
	out := Storages{Files: map[string][]audit.Volume{}, All: slices.Contains(a.Storage, all)}
	if !out.All {
		out.Classes = a.Storage
	}
	for _, list := range a.Files {
		class, name, ok := strings.Cut(list, "=")
		if !ok {
			return out, fmt.Errorf("--volumes=%s: must have the form CLASS=FILE", list)
		}
		file, err := os.Open(name)
		if err != nil {
			return out, err
		}
		out.Files[class], err = ReadVolumes(file)
		_ = file.Close() // it was only read
		if err != nil {
			return out, fmt.Errorf("--volumes=%s: %w", list, err)
		}
	}
	return out, nil
}

// Connect returns an Auditor of the claims that a dispatcher serves. lease is that of its leader
// election.
func Connect(ctx context.Context, cfg *rest.Config, serving options.Serving, lease types.NamespacedName) (*Auditor, error) {
	allowed, err := serving.Allowances()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	objects, err := metadata.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	uid, err := admin.ClusterUID(ctx, client)
	return &Auditor{
		Client: client, Objects: objects, Clock: clock.RealClock{}, Dispatcher: serving.Dispatcher(), Namespace: serving.Namespace,
		ConfigNamespaces: serving.ConfigNamespaces, Lease: lease, Allowed: allowed, Cluster: Cluster{KubeAPI: serving.KubeAPI, UID: uid},
	}, err
}
