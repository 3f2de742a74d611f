package plugin

import (
	"bufio"
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

	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

func logsCommand() *cobra.Command {
	a, attempt, follow := &asked{}, 0, false
	cmd := &cobra.Command{
		Use:   "logs CLAIM|pv/NAME",
		Short: "Print the logs of the newest Job for a claim or a PersistentVolume",
		Long: "logs prints the logs of all containers of the newest Job, init containers first. The\n" +
			"pods of a Job that succeeded are deleted soon; those of one that failed remain for an\n" +
			"hour. What a terminal would not show as it is, such as an escape code, is left out.",
		Example: "  kubectl flex logs data --namespace=shop\n" +
			"  kubectl flex logs data --namespace=shop --follow\n" +
			"  kubectl flex logs pv/pvc-6f0c3b1e-2d4a-4c8e-9a57-0b1c2d3e4f50 --attempt=2",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, job, err := a.findJob(cmd.Context(), args[0], attempt)
			if err != nil {
				return err
			}
			return printLogs(cmd.Context(), client, job, &corev1.PodLogOptions{Follow: follow}, cmd.OutOrStdout())
		},
	}
	a.connection.addFlags(cmd.Flags())
	cmd.Flags().IntVar(&attempt, "attempt", 0, "print the newest Job of this attempt; default: the newest of all")
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "print what is still being written")
	return cmd
}

// findJob returns the newest Job of an attempt for a claim or PV, and a client. Only what is printed
// after that may take any time: it may be followed.
func (a *asked) findJob(ctx context.Context, name string, attempt int) (kubernetes.Interface, *batchv1.Job, error) {
	ctx, stop := context.WithTimeout(ctx, timeout)
	defer stop()
	t, err := a.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	r, err := t.why(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	run, err := runOfAttempt(r, attempt)
	if err != nil {
		return nil, nil, err
	}
	job := t.dispatcher.caches.Jobs.Named(run.Job)
	if job == nil {
		return nil, nil, fmt.Errorf("the Job %s was deleted a moment ago", run.Job)
	}
	return t.client, job, nil
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

// printLogs prints the logs of the pods of a Job. Another client's pod may have the label with its
// name.
func printLogs(ctx context.Context, client kubernetes.Interface, job *batchv1.Job, options *corev1.PodLogOptions, out io.Writer) error {
	list, err := client.CoreV1().Pods(job.Namespace).List(ctx, metav1.ListOptions{LabelSelector: batchv1.JobNameLabel + "=" + job.Name})
	if err != nil {
		return fmt.Errorf("list the pods of the Job %s/%s: %w", job.Namespace, job.Name, err)
	}
	var labelled []*corev1.Pod
	for i := range list.Items {
		labelled = append(labelled, &list.Items[i])
	}
	pods := runs.PodsOf(job, labelled)
	if len(pods) == 0 {
		return fmt.Errorf("the pods of the Job %s/%s no longer exist: kubectl --namespace=%s describe job %s shows the last lines of their output", job.Namespace, job.Name, job.Namespace, job.Name)
	}
	for _, pod := range pods {
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
		_, err = fmt.Fprintln(out, quote.Line(err.Error())) // it has not started, say
		return err
	}
	defer func() { _ = log.Close() }() // it is only read
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		if _, err := fmt.Fprintln(out, quote.Lines(lines.Text())); err != nil {
			return err
		}
	}
	return lines.Err()
}

// longestLine is how long a line of a log may be, in bytes.
const longestLine = 1 << 20
