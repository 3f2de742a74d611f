package plugin

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/flex-provisioner/flex-provisioner/conform"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/options"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/try"
	"github.com/flex-provisioner/flex-provisioner/try/box"
)

// trying are the flags of try.
type trying struct {
	promises

	files         Files
	output, badge string
	yes, verbose  bool
}

func tryCommand() *cobra.Command {
	t := &trying{}
	cmd := &cobra.Command{
		Use:   "try FILE|DIRECTORY...",
		Short: "Test a provisioner on this machine, from its files, without a cluster",
		Long: "try serves claims of a class by the dispatcher's own code and a Kubernetes in memory.\n" +
			"The container of each Job runs as a process of this machine: a script by this machine's\n" +
			"programs in Linux namespaces, without root; an image by podman or docker. It shows what\n" +
			"the user of a claim would see, and says of each promise of the contract whether the\n" +
			"provisioner keeps it. It makes real volumes where the provisioner reaches a storage, and\n" +
			"deletes them. A hostPath or a claim that its pods mount is a directory in memory. The\n" +
			"exit code is 1 if a promise is broken, and 2 if one has failed or none is kept.",
		Example: "  kubectl flex try my-filer.yaml\n  kubectl flex try my-filer.yaml login.yaml --yes --provoke=provoke.txt",
		Args:    cobra.MinimumNArgs(1),
		RunE:    t.run,
	}
	t.addFlags(cmd.Flags())
	t.files.addServing(cmd)
	cmd.Flags().StringVarP(&t.output, "output", "o", "", "json or yaml; default: text for people")
	cmd.Flags().StringVar(&t.badge, "badge", "", "write a picture (SVG) with the result to this file")
	cmd.Flags().BoolVar(&t.yes, "yes", false, "make volumes in the storage for which the files have a login")
	cmd.Flags().BoolVarP(&t.verbose, "verbose", "v", false, "show every run, and not only those of the first claim")
	return cmd
}

func (t *trying) run(cmd *cobra.Command, names []string) error {
	if err := cmp.Or(checkFormat(t.output), t.parse()); err != nil {
		return err
	}
	t.files.Names = names
	m, err := t.files.read()
	if err != nil {
		return err
	}
	all, err := m.trials()
	if err != nil {
		return err
	}
	if err := t.checkBadge(len(all)); err != nil {
		return err
	}
	var failed error
	for _, one := range all {
		failed = cmp.Or(failed, t.one(cmd, one))
	}
	return failed
}

// checkBadge returns why no badge can be written, before minutes have passed.
func (t *trying) checkBadge(classes int) error {
	switch {
	case t.badge == "":
		return nil
	case classes > 1:
		return fmt.Errorf("--badge: the files have %d classes, and a badge is of one. Remedy: name the files of one", classes)
	default:
		return os.WriteFile(t.badge, nil, 0o644) //nolint:gosec // to be published
	}
}

// trials returns what can be tried of files: each class with its config.
func (m *manifests) trials() (out []*try.Trial, err error) {
	for _, class := range m.classes {
		i := slices.IndexFunc(m.configs, func(cm configInFile) bool { return serves(cm.ConfigMap, class) })
		if i < 0 {
			continue
		}
		cm := m.configs[i]
		if faults := faultsOfClass(class, cm, m.serving); len(faults) > 0 {
			return nil, fmt.Errorf("%s: %s", cm.at, strings.Join(faults, ". "))
		}
		out = append(out, m.trial(class, cm.ConfigMap))
	}
	if len(out) == 0 {
		return nil, errors.New("the files have no StorageClass that a ConfigMap of theirs serves. Remedy: name a file with the class, too")
	}
	return out, nil
}

// trial returns the trial of a class.
func (m *manifests) trial(class *storagev1.StorageClass, cm *corev1.ConfigMap) *try.Trial {
	cfg, _ := config.Parse(config.SourceOf(cm, class), m.serving.Dispatcher()) // it has no faults
	return &try.Trial{
		Class: class, Config: cfg, Configs: append(slices.Clone(m.others), cm), Secrets: m.secrets, Accounts: m.accounts, Serving: m.serving,
	}
}

// one tries one class.
func (t *trying) one(cmd *cobra.Command, trial *try.Trial) error {
	if trial.LogsIn() && !t.yes {
		return fmt.Errorf("the class %s has a login to a storage, and try makes and deletes volumes there. Remedy: kubectl flex try --yes, with the login of a storage for tests", trial.Class.Name)
	}
	runner, err := runnerOf(trial)
	if err != nil {
		return err
	}
	out := &transcript{out: cmd.OutOrStdout(), all: t.verbose}
	if t.output != "" {
		out.out = io.Discard
	}
	trial.Options, trial.Runner, trial.Shown = t.Options, runner, out.show
	out.head(trial)
	report, failed := trial.Do(cmd.Context(), out.say)
	out.end()
	failed = cmp.Or(failed, runner.Close())
	if report == nil {
		return failed
	}
	report.APIVersion, report.Kind = Version, "Trial"
	printed, err := printObject(cmd.OutOrStdout(), t.output, report)
	if !printed {
		err = report.PrintEnd(cmd.OutOrStdout(), "something may be left of the volume of %s: look for it in the storage. A directory that pods mount was in memory")
	}
	if t.badge != "" && err == nil {
		err = os.WriteFile(t.badge, []byte(badge(report)), 0o644) //nolint:gosec // to be published
	}
	return cmp.Or(err, failed, verdictOf(report))
}

// runnerOf returns what runs the containers of a trial: a script's as processes, an image's by a
// container engine. Where this machine lets no processes be isolated, an image for scripts is one.
func runnerOf(trial *try.Trial) (box.Runner, error) {
	image := trial.Config.Image
	if trial.Config.Script == "" {
		return engine(image)
	}
	b, err := box.Open()
	if err == nil {
		return b, nil
	}
	if image == options.ShellImage { // no name by which it could be pulled
		return nil, err
	}
	runner, none := engine(image)
	if none != nil {
		return nil, err // which names an engine as the other way
	}
	return runner, nil
}

// engines are the programs that run images, in the order in which they are looked for.
var engines = []string{"podman", "docker"}

func engine(image string) (box.Runner, error) {
	for _, name := range engines {
		if path, err := exec.LookPath(name); err == nil {
			return box.NewEngine(path)
		}
	}
	return nil, fmt.Errorf("the provisioner is the image %s, and this machine has no program to run it. Remedy: install podman or docker", quote.Name(image))
}

// longestClaims is how much is printed of the names of the claims of a run, in bytes.
const longestClaims = 70

// transcript prints what a trial shows.
type transcript struct {
	out io.Writer
	all bool
	mu  sync.Mutex // over what follows: containers end while a promise does
	// later is set once the runs of the first claim are over. results are those before.
	later   bool
	results []conform.Result
	pv      *corev1.PersistentVolume // that is not printed yet
}

func (p *transcript) head(trial *try.Trial) {
	what := "script runs on this machine, as you"
	if trial.Config.Script == "" {
		what = "image runs on this machine"
	}
	src := trial.Config.Source
	fmt.Fprintf(p.out, "class %s, ConfigMap %s/%s: its %s.\nIt makes real volumes where it reaches a storage, and deletes them.\n",
		src.Class, src.Namespace, src.Name, what)
	if flags := trial.Flags(); len(flags) > 0 {
		fmt.Fprintf(p.out, "In a cluster its dispatcher needs the flags %s\n", strings.Join(flags, " "))
	}
	if account := trial.Account(); account != nil {
		fmt.Fprintf(p.out, "In a cluster it needs the ServiceAccount %s/%s, which the files do not have.\n", account.Namespace, account.Name)
	}
	fmt.Fprintln(p.out)
}

// show prints a run, a PersistentVolume or an event.
func (p *transcript) show(s try.Shown) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.later && !p.all:
		return
	case s.Event != "":
		fmt.Fprintf(p.out, "  event  %s\n", quote.Indent(quote.Line(s.Event), 9))
	case s.PV != nil:
		p.pv = s.PV
		return
	default:
		fmt.Fprintf(p.out, "%s of %s: exit code %d (%s) after %s\n", s.Verb, contract.Shorten(s.Claim, longestClaims), s.End.Code, contract.VerdictOf(s.End.Code), s.End.Took.Round(time.Millisecond))
		for line := range strings.Lines(s.End.Output + s.End.Message) {
			fmt.Fprintf(p.out, "  | %s\n", quote.Line(strings.TrimRight(line, "\n")))
		}
	}
	p.showPV()
}

// showPV prints the PersistentVolume that was written last, after the run that has.
func (p *transcript) showPV() {
	if p.pv == nil {
		return
	}
	source, _ := json.Marshal(p.pv.Spec.PersistentVolumeSource) // it was decoded from JSON
	fmt.Fprintf(p.out, "  PersistentVolume of %s: %s\n", p.pv.Spec.Capacity.Storage(), quote.Line(string(source)))
	p.pv = nil
}

// say prints the result of a promise. Those before the end of the first claim come after its runs.
func (p *transcript) say(result conform.Result) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.results = append(p.results, result)
	ended := result.Verdict == conform.Broken || result.Verdict == conform.Failed || result.Promise == string(contract.Delete)
	if p.later || ended {
		p.flush()
	}
}

// end prints what is left.
func (p *transcript) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flush()
}

// flush prints the results that were not printed yet.
func (p *transcript) flush() {
	if !p.later {
		fmt.Fprintln(p.out)
	}
	p.later = true
	for _, result := range p.results {
		_ = result.Print(p.out) // a report that cannot be printed shows at the end
	}
	p.results = nil
}
