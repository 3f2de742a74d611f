package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

func logsCommand() *cobra.Command {
	a, attempt, follow := &asked{}, 0, false
	cmd := &cobra.Command{
		Use:   "logs CLAIM|pv/NAME",
		Short: "Print the logs of the newest Job for a claim or a PersistentVolume",
		Long: "logs prints the logs of all containers of the newest Job, init containers first. The pods of a Job that succeeded are deleted soon; those of one that failed remain for an hour.\n" +
			"What a storage writes to its log is printed as it is.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, run, err := a.findRun(cmd.Context(), args[0], attempt)
			if err != nil {
				return err
			}
			return printLogs(cmd.Context(), client, run, &corev1.PodLogOptions{Follow: follow}, cmd.OutOrStdout())
		},
	}
	a.connection.addFlags(cmd.Flags())
	cmd.Flags().IntVar(&attempt, "attempt", 0, "print the newest Job of this attempt; default: the newest of all")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print what is still being written")
	return cmd
}

// findRun returns the newest run of an attempt for a claim or PV, and a client. Only what is printed
// after that may take any time: it may be followed.
func (a *asked) findRun(ctx context.Context, name string, attempt int) (kubernetes.Interface, Run, error) {
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	t, err := a.open(ctx)
	if err != nil {
		return nil, Run{}, err
	}
	r, err := t.why(ctx, name)
	if err != nil {
		return nil, Run{}, err
	}
	run, err := runOfAttempt(r, attempt)
	return t.client, run, err
}

// runOfAttempt returns the newest run of an attempt, or of all attempts if that is 0.
func runOfAttempt(r *Report, attempt int) (Run, error) {
	if len(r.NotRead) > 0 {
		return Run{}, fmt.Errorf("you may not %s: ask an administrator of the storage", strings.Join(r.NotRead, "; "))
	}
	for _, run := range slices.Backward(r.Runs) {
		if attempt == 0 || run.Attempt == attempt {
			return run, nil
		}
	}
	return Run{}, errors.New("no such Job exists: kubectl flex why lists those that do")
}

// printLogs copies the logs of the pods of a run.
func printLogs(ctx context.Context, client kubernetes.Interface, run Run, options *corev1.PodLogOptions, out io.Writer) error {
	namespace, name, _ := strings.Cut(run.Job, "/")
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + name})
	if err != nil {
		return fmt.Errorf("list the pods of the Job %s: %w", run.Job, err)
	}
	if len(pods.Items) == 0 {
		return fmt.Errorf("the pods of the Job %s no longer exist: kubectl --namespace=%s describe job %s shows the last lines of their output", run.Job, namespace, name)
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			options.Container = c.Name
			if err := printLog(ctx, client, pod, options, out); err != nil {
				return err
			}
		}
	}
	return nil
}

func printLog(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod, options *corev1.PodLogOptions, out io.Writer) error {
	if _, err := fmt.Fprintf(out, "==> pod %s, container %s <==\n", pod.Name, options.Container); err != nil {
		return err
	}
	log, err := client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).Stream(ctx)
	if err != nil {
		_, err = fmt.Fprintf(out, "%v\n", err) // it has not started, say
		return err
	}
	defer func() { _ = log.Close() }() // it is only read
	_, err = io.Copy(out, log)
	return err
}
