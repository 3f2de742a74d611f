package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
	// The image has no CA certificates of its own.
	_ "golang.org/x/crypto/x509roots/fallback"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/internal/version"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/input"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/run"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	result := execute(ctx, os.Args[1:])
	stop()
	report(result, os.Stderr)
	os.Exit(result.Code)
}

// execute runs the verb that the arguments name.
func execute(ctx context.Context, args []string) run.Result {
	// What cobra refuses before a verb begins is a wrong use of the command.
	result := run.Result{Code: contract.ExitUsage}
	root := command(func(verb contract.Verb, o options) {
		result = run.JudgeAll(work(ctx, verb, o))
	})
	root.SetArgs(args)
	if err := root.Execute(); err != nil {
		return run.Judge(input.Task{}, run.Report{}, &input.Error{Code: contract.ExitUsage, Err: err})
	}
	if asked, _ := root.Flags().GetBool("version"); asked {
		return run.Result{} // cobra has printed it, and no verb ran
	}
	return result
}

// options are the flags. A pod needs none of them.
type options struct {
	dir, kubeconfig, namespace string
}

// verbs lists the verbs of this image, each with what it does.
func verbs() map[contract.Verb]string {
	return map[contract.Verb]string{
		contract.Provision: "Create the volume of a claim and its PersistentVolume",
		contract.Delete:    "Delete the volume of a claim and its Secret",
		contract.Expand:    "Expand the volume of a claim",
		contract.List:      "List every volume that was created for a claim, one a line",
	}
}

func command(do func(contract.Verb, options)) *cobra.Command {
	var o options
	root := &cobra.Command{
		Use:           "cinder-provisioner",
		Version:       version.Get().String(),
		Short:         "Provision Kubernetes volumes from OpenStack Cinder",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&o.dir, "dir", contract.Dir, "directory with request.json, pv.json and secret/")
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig file; default: the pod's ServiceAccount")
	flags.StringVar(&o.namespace, "namespace", "", "namespace of Secrets; default: the pod's namespace")
	for verb, short := range verbs() {
		root.AddCommand(&cobra.Command{
			Use:   string(verb),
			Short: short,
			Args:  cobra.NoArgs,
			Run:   func(*cobra.Command, []string) { do(verb, o) },
		})
	}
	return root
}

// report writes the message to the termination log, which the kubelet reads, and to the log.
func report(result run.Result, log io.Writer) {
	fmt.Print(result.Output)
	fmt.Fprint(log, result.Message)
	if err := terminate(result.Message); err != nil {
		fmt.Fprintln(log, "write the termination message:", err)
	}
}

// terminate writes the termination message, if there is a file for it.
func terminate(message string) error {
	file, err := os.OpenFile(contract.TerminationLog, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return nil // outside of a pod there is no such file
	}
	defer file.Close()
	_, err = file.WriteString(message)
	return err
}
