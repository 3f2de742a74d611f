package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
)

func retryCommand() *cobra.Command {
	a := &asked{}
	cmd := &cobra.Command{
		Use:   "retry CLAIM|pv/NAME",
		Short: "Start the next attempt for a claim or a PersistentVolume at once",
		Long: "retry ends the pause after a failed run, also after the last attempt of max-attempts. Use it when you have corrected what the dispatcher cannot see,\n" +
			"such as the content of a Secret or the storage. A corrected ConfigMap is used at once, without this command.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx, stop := context.WithTimeout(cmd.Context(), timeout)
			defer stop()
			job, err := a.retry(ctx, args[0])
			if err == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "job.batch/%s annotated: the next attempt of each of its claims follows at once\n", job)
			}
			return err
		},
	}
	a.connection.addFlags(cmd.Flags())
	return cmd
}

// retry annotates the newest Job for a claim or PV, and returns its name.
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

// Retry asks for the next attempt after the newest Job of a report, and returns the Job's name.
func (d *Dispatcher) Retry(ctx context.Context, r *Report) (string, error) {
	if len(r.Runs) == 0 {
		return "", errors.New("no Job exists, so no attempt has failed: kubectl flex why says what the claim waits for")
	}
	last := r.Runs[len(r.Runs)-1]
	job := d.caches.Jobs.Named(last.Job)
	if last.Ended == nil || job == nil {
		return "", fmt.Errorf("the Job %s has not ended: an attempt is at work", last.Job)
	}
	return last.Job, admin.AskForRetry(ctx, d.Client, job)
}
