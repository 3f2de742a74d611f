package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
)

func retryCommand() *cobra.Command {
	a := &asked{}
	cmd := &cobra.Command{
		Use:   "retry CLAIM|pv/NAME",
		Short: "Start the next attempt for a claim or a PersistentVolume at once",
		Long: "retry ends the pause after a failed run, also after the last attempt of max-attempts.\n" +
			"Use it when you have corrected what the dispatcher cannot see, such as the content of a\n" +
			"Secret or the storage. A corrected ConfigMap is used at once, without this command.",
		Example: "  kubectl flex retry data --namespace=shop\n" +
			"  kubectl flex retry pv/pvc-6f0c3b1e-2d4a-4c8e-9a57-0b1c2d3e4f50",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := context.WithTimeout(cmd.Context(), timeout)
			defer stop()
			job, err := a.retry(ctx, args[0])
			if err == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "job.batch/%s annotated\nthe next attempt of each of its claims follows at once\n", job)
			}
			return err
		},
	}
	a.connection.addFlags(cmd.Flags())
	return cmd
}

// retry annotates the Job after which the next attempt for a claim or PV waits, and returns its name.
func (a *asked) retry(ctx context.Context, name string) (string, error) {
	t, err := a.open(ctx)
	if err != nil {
		return "", err
	}
	if t.dispatcher == nil {
		return "", fmt.Errorf("you may not %s: ask an administrator of the storage", strings.Join(t.notRead, "; "))
	}
	r, err := t.why(ctx, name)
	if err != nil {
		return "", err
	}
	return t.dispatcher.Retry(ctx, r)
}

// Retry asks for the next attempt of a report, on the Job after which that waits, and returns the
// Job's name.
func (d *Dispatcher) Retry(ctx context.Context, r *Report) (string, error) {
	if len(r.Runs) == 0 {
		return "", errors.New("no Job exists, so no attempt has failed: kubectl flex why " +
			"says what the claim waits for. A write that the API server has refused is tried again " +
			"every minute, also without a command")
	}
	o, action, err := d.next(ctx, types.UID(cmp.Or(r.made, r.UID)), observe.Hint{})
	if err != nil {
		return "", err
	}
	if last := newest(o.View.Runs); last != nil && last.State() < decide.RunEnded {
		return "", fmt.Errorf("the Job %s has not ended: an attempt is at work", r.Runs[len(r.Runs)-1].Job)
	}
	last := awaited(o)
	if !isIdle(action) || last == nil {
		return "", errors.New("no attempt waits for the end of a pause: kubectl flex why says what is done next")
	}
	job := o.Jobs[last.Name]
	return job.Namespace + "/" + job.Name, admin.AskForRetry(ctx, d.Client, job)
}
