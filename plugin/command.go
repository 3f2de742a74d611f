package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/flex-provisioner/flex-provisioner/audit/run"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/internal/version"
)

// ErrFound is the error of a command that has looked at everything, and has found something wrong.
// It is printed already.
var ErrFound = errors.New("something is wrong")

// Exit codes of every command.
const (
	ExitWell   = 0 // all is well, or at work as it is to be
	ExitFound  = 1 // something is wrong
	ExitFailed = 2 // the command could not look, or did not do its work: a flag, the network, a permission
)

// ExitCode returns the exit code of a command that ended with an error.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return ExitWell
	case isFound(err):
		return ExitFound
	default:
		return ExitFailed
	}
}

// isFound reports whether a command has looked at everything, and has found something wrong.
func isFound(err error) bool {
	return errors.Is(err, ErrFound) || errors.As(err, new(run.FindingsError))
}

// Command is kubectl flex, with all its commands. now is the time that ages are counted from.
func Command(now func() time.Time) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kubectl-flex",
		Short: "Understand the claims and classes of flex-provisioner",
		Long: "kubectl flex says why a claim is as it is, and how the classes of flex-provisioner do.\n" +
			"What it says is what the dispatcher decides from the same objects. The exit code is 0 if\n" +
			"all is well or at work, 1 if something is wrong, and 2 if the command could not look, or\n" +
			"did not do its work.",
		Annotations:  map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl flex"},
		Version:      version.Get().String(),
		SilenceUsage: true, SilenceErrors: true,
	}
	// The flags of client-go have sentences of 200 columns. The commands inherit the template.
	cmd.SetUsageTemplate(strings.ReplaceAll(cmd.UsageTemplate(), ".FlagUsages ", ".FlagUsagesWrapped 100 "))
	cmd.AddCommand(whyCommand(now), statusCommand(now), logsCommand(), retryCommand(), newCommand(),
		tryCommand(), validateCommand(), renderCommand(), historyCommand(now), moveCommand(), trashCommand(),
		undeleteCommand(), auditCommand(), uninstallCommand(), conformCommand())
	return cmd
}

// timeout is how long a command may take to read a cluster.
const timeout = 2 * time.Minute

// asked are the flags of a command that reads a cluster.
type asked struct {
	connection

	output string
}

func (a *asked) addFlags(cmd *cobra.Command) {
	a.connection.addFlags(cmd.Flags())
	cmd.Flags().StringVarP(&a.output, "output", "o", "", "json or yaml; default: text for people")
}

// target is a cluster that a command has connected to.
type target struct {
	client    kubernetes.Interface
	namespace string // of the kubeconfig's context, or of --namespace
	// dispatcher is nil if the user may not read what it reads: notRead.
	dispatcher *Dispatcher
	notRead    []string
}

// open connects to the cluster, and reads what the dispatcher reads.
func (a *asked) open(ctx context.Context) (*target, error) {
	if err := checkFormat(a.output); err != nil {
		return nil, err
	}
	at, err := a.at()
	if err != nil {
		return nil, err
	}
	cfg, namespace, err := a.connect()
	if err != nil {
		return nil, err
	}
	client, consents, err := clients(cfg)
	if err != nil {
		return nil, err
	}
	t := &target{client: client, namespace: namespace}
	d, err := Find(ctx, client, at)
	if apierrors.IsForbidden(err) {
		t.notRead = []string{"get deployments.apps " + at.String()}
		return t, nil
	}
	if err != nil {
		return nil, err
	}
	if t.notRead, err = admin.CannotRead(ctx, client, d.Serving.Namespaces()); err != nil || len(t.notRead) > 0 {
		return t, err
	}
	d.Grants, t.dispatcher = consents, d
	return t, d.Open(ctx)
}

// openAsAdmin connects as open does, and fails for a user who may not read what the dispatcher reads.
// stop ends the watches.
func (a *asked) openAsAdmin(ctx context.Context) (d *Dispatcher, stop func(), err error) {
	ctx, stop = context.WithTimeout(ctx, timeout)
	t, err := a.open(ctx)
	switch {
	case err != nil:
	case t.dispatcher == nil:
		err = fmt.Errorf("you may not %s: ask an administrator of the storage", strings.Join(t.notRead, "; "))
	default:
		end := stop
		return t.dispatcher, func() { end(); t.dispatcher.Close() }, nil
	}
	stop()
	return nil, nil, err
}

func whyCommand(now func() time.Time) *cobra.Command {
	a := &asked{}
	cmd := &cobra.Command{
		Use:   "why CLAIM|pv/NAME",
		Short: "Say why a claim or a PersistentVolume is as it is, and what happens next",
		Long: "why prints the chain from a claim to its volume: the config, each Job with its outcome,\n" +
			"the cause of a failure, its remedy and the next step. A user who may not read Jobs sees\n" +
			"what the claim and its events say.",
		Example: "  kubectl flex why data -n shop\n  kubectl flex why pv/pvc-6f0c3b1e-2d4a-4c8e-9a57-0b1c2d3e4f50",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := context.WithTimeout(cmd.Context(), timeout)
			defer stop()
			t, err := a.open(ctx)
			if err != nil {
				return err
			}
			r, err := t.why(ctx, args[0])
			if err != nil {
				return err
			}
			printed, err := printObject(cmd.OutOrStdout(), a.output, r)
			if !printed {
				err = Print(cmd.OutOrStdout(), now(), r)
			}
			return cmp.Or(err, r.found())
		},
	}
	a.addFlags(cmd)
	return cmd
}

// why finds a claim or PV by its name, and explains it.
func (t *target) why(ctx context.Context, name string) (*Report, error) {
	if pv, isPV := strings.CutPrefix(name, "pv/"); isPV {
		if t.dispatcher == nil {
			return nil, fmt.Errorf("the PersistentVolume %s: you may not %s", pv, strings.Join(t.notRead, "; "))
		}
		uid, err := t.dispatcher.uidOfPV(ctx, pv)
		if err != nil {
			return nil, err
		}
		return t.dispatcher.Explain(ctx, uid)
	}
	name = strings.TrimPrefix(name, "pvc/")
	if namespace, of, named := strings.Cut(name, "/"); named {
		return nil, fmt.Errorf("%s is no name of a claim: must be CLAIM or pv/NAME. The namespace is a flag: %s --namespace=%s", quote.Name(name), quote.Name(of), quote.Name(namespace))
	}
	claim, err := t.client.CoreV1().PersistentVolumeClaims(t.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		err = fmt.Errorf("get the claim %s in the namespace %s (--namespace names another): %w", quote.Name(name), t.namespace, err)
		if apierrors.IsNotFound(err) {
			err = fmt.Errorf("%w%s", err, t.dispatcher.Deleted(ctx, t.namespace+"/"+name))
		}
		return nil, err
	}
	if t.dispatcher == nil {
		return ExplainToUser(ctx, t.client, claim, t.notRead)
	}
	return t.dispatcher.Explain(ctx, claim.UID)
}

// uidOfPV returns the UID of the claim that a PV was made for. It need not exist if Jobs for that claim
// do: they may undo what they have made.
func (d *Dispatcher) uidOfPV(ctx context.Context, name string) (types.UID, error) {
	pv, err := d.Client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if uid, named := strings.CutPrefix(name, contract.PVName("")); apierrors.IsNotFound(err) && named && len(d.caches.Jobs.By(cluster.ByUID, uid)) > 0 {
		return types.UID(uid), nil
	}
	if err != nil {
		return "", fmt.Errorf("get the PersistentVolume %s: %w", quote.Name(name), err)
	}
	if err := whyNotMade(pv, d.Serving.Provisioner); err != nil {
		return "", fmt.Errorf("the PersistentVolume %s: %w", name, err)
	}
	return types.UID(pv.Annotations[contract.AnnClaimUID]), nil
}
