package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/audit/run"
	"github.com/flex-provisioner/flex-provisioner/conform"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/options"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

// promises are the flags that say what is tested, and how.
type promises struct {
	conform.Options

	skip          []string
	size, provoke string
}

// conforming are the flags of conform.
type conforming struct {
	asked
	promises
}

func conformCommand() *cobra.Command {
	c := &conforming{}
	cmd := &cobra.Command{
		Use:   "conform CLASS",
		Short: "Test whether the image of a class keeps the contract",
		Long: "conform creates claims of the class in a namespace of its own, kills pods of their Jobs,\n" +
			"and says of each promise of the contract whether the image keeps it. It needs a cluster\n" +
			"in which the class is served, and deletes what it has created. The exit code is 1 if a\n" +
			"promise is broken, and 2 if one has failed or none is kept.",
		Example: "  kubectl flex conform gold\n  kubectl flex conform gold --mount=registry.example/busybox:1 --provoke=provoke.txt",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.run(cmd, args[0]) },
	}
	c.asked.addFlags(cmd)
	c.promises.addFlags(cmd.Flags())
	cmd.Flags().StringVar(&c.Mount, "mount", "", "image with a shell, by which volumes are mounted, written to and read, and runs are held until they are killed; default: none")
	cmd.Flags().BoolVar(&c.Keep, "keep", false, "keep the objects of a promise that is broken, and their namespace")
	return cmd
}

func (c *promises) addFlags(f *pflag.FlagSet) {
	f.StringSliceVar(&c.Only, "only", nil, "test only these promises: PROMISE,PROMISE")
	f.StringArrayVar(&c.skip, "skip", nil, "do not test a promise: PROMISE=REASON; may be repeated")
	f.StringVar(&c.size, "size", "1Gi", "size of each volume. Volumes grow to twice that size")
	f.IntVar(&c.Kills, "kills", 3, "how many Jobs of each verb are killed at work")
	f.StringVar(&c.provoke, "provoke", "", "YAML file that says how the image is made to refuse a claim")
}

// parse reads the flags that have a form.
func (c *promises) parse() (err error) {
	if c.Size, err = resource.ParseQuantity(c.size); err != nil {
		return fmt.Errorf("--size=%s: %w", quote.Name(c.size), err)
	}
	c.Skip = map[string]string{}
	for _, text := range c.skip {
		name, why, _ := strings.Cut(text, "=")
		if strings.TrimSpace(why) == "" {
			return fmt.Errorf("--skip=%s: must have the form PROMISE=REASON", quote.Name(text))
		}
		c.Skip[name] = why
	}
	if c.provoke == "" {
		return nil
	}
	text, err := os.ReadFile(c.provoke)
	if err != nil {
		return err
	}
	c.Provoke, err = conform.ReadProvocations(text)
	return err
}

// run tests the image of a class.
func (c *conforming) run(cmd *cobra.Command, class string) error {
	if err := cmp.Or(checkFormat(c.output), c.parse()); err != nil {
		return err
	}
	test, err := c.open(cmd, class)
	if err != nil {
		return err
	}
	say := func(conform.Result) {}
	if c.output == "" {
		err = test.PrintHead(cmd.OutOrStdout())
		say = func(result conform.Result) { err = cmp.Or(err, result.Print(cmd.OutOrStdout())) }
	}
	defer context.AfterFunc(cmd.Context(), func() {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), quote.Indent("interrupted: what the test has created is deleted, which may take minutes. "+
			"A second interrupt leaves it, and this deletes it: kubectl delete namespace --selector="+conform.LabelRun, 4))
	})()
	report, failed := test.Do(cmd.Context(), say)
	if report == nil {
		return failed
	}
	report.APIVersion, report.Kind = Version, "Conformance"
	printed, printing := printObject(cmd.OutOrStdout(), c.output, report)
	if !printed {
		printing = report.PrintEnd(cmd.OutOrStdout(), "something may be left of %[1]s: kubectl flex why pv/%[1]s")
	}
	return cmp.Or(err, printing, failed, verdictOf(report))
}

// errNotTested is the error of a run that could not test what it was to test.
var errNotTested = errors.New("not every promise could be tested")

// verdictOf returns the error of a report: a broken promise, or one that could not be tested.
func verdictOf(report *conform.Report) error {
	switch {
	case report.Broken() > 0:
		return ErrFound
	case report.Count(conform.Failed) > 0 || report.Count(conform.Kept) == 0:
		return errNotTested
	default:
		return nil
	}
}

// open finds the class, its config and what lists its storage.
func (c *conforming) open(cmd *cobra.Command, name string) (*conform.Run, error) {
	d, stop, err := c.openAsAdmin(cmd.Context())
	if err != nil {
		return nil, err
	}
	defer stop()
	if d.idle != "" {
		return nil, errors.New(d.idle + ", so no claim would be served")
	}
	class, err := d.Client.StorageV1().StorageClasses().Get(cmd.Context(), name, metav1.GetOptions{}) // whole: the caches have a part of it
	if err != nil || class.Provisioner != d.Serving.Provisioner {
		return nil, cmp.Or(err, fmt.Errorf("the class %s has another provisioner than %s", quote.Name(name), d.Serving.Provisioner))
	}
	resolver, err := d.resolver()
	if err != nil {
		return nil, err
	}
	present := resolver.AtPresent(class)
	if problem := present.Target.Problem; problem != nil {
		return nil, fmt.Errorf("no claim of the class %s can be provisioned: %s", name, problem.Note)
	}
	deployment, err := d.Client.AppsV1().Deployments(d.At.Namespace).Get(cmd.Context(), d.At.Name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	test := &conform.Run{
		Options: c.Options, Client: d.Client, Clock: d.Clock, Class: class, Config: present.Config, PodImage: options.ContainerOf(deployment).Image,
	}
	auditor, err := c.auditor(cmd)
	if err != nil {
		return nil, err
	}
	auditor.Timeout = present.Config.Timeout
	test.ClusterUID = auditor.Cluster.UID
	test.List = listOf(auditor, name)
	return test, nil
}

// listOf returns what lists the storage of a class.
func listOf(auditor *run.Auditor, class string) func(context.Context) ([]audit.Volume, error) {
	return func(ctx context.Context) ([]audit.Volume, error) {
		classes, err := auditor.Classes(ctx, class)
		if err != nil {
			return nil, err
		}
		if classes[0].Fault != nil {
			return nil, classes[0].Fault
		}
		return auditor.List(ctx, classes[0])
	}
}
