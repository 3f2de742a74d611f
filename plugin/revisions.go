package plugin

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/pmezard/go-difflib/difflib"
	"github.com/spf13/cobra"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/cluster"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/resolve"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// History is the config revisions of a class, the newest first.
type History struct {
	metav1.TypeMeta `json:",inline"`

	Class     string     `json:"class"`
	Revisions []Revision `json:"revisions"`
}

// Revision is one stored config of a class.
type Revision struct {
	Name    string      `json:"name"` // namespace/name
	Number  int64       `json:"number"`
	Created metav1.Time `json:"created"`
	Image   string      `json:"image,omitempty"`
	// Script is a hash of the script, empty if it has none.
	Script string `json:"script,omitempty"`
	// Volumes are the PersistentVolumes that are deleted and expanded under it, Jobs those that ran
	// under it and still exist.
	Volumes int `json:"volumes"`
	Jobs    int `json:"jobs"`
}

// History lists the stored revisions of a class.
func (d *Dispatcher) History(class string) (*History, error) {
	stored := d.revisionsOf(class)
	if len(stored) == 0 {
		return nil, fmt.Errorf("the class %s has no config revision: one is stored when the first claim of the class is served", class)
	}
	out := &History{TypeMeta: metav1.TypeMeta{APIVersion: Version, Kind: "History"}, Class: class}
	for _, r := range stored {
		name := r.Namespace + "/" + r.Name
		revision := Revision{
			Name: name, Number: r.Revision, Created: r.CreationTimestamp,
			Volumes: len(d.caches.PVs.By(cluster.ByRevision, name)), Jobs: len(d.caches.Jobs.By(cluster.ByRevision, name)),
		}
		if src, err := config.StoredSource(r); err == nil {
			cfg, _ := config.Parse(src, d.Serving.Dispatcher())
			revision.Image, revision.Script = quote.Name(cfg.Image), hashOfScript(cfg.Script)
		}
		out.Revisions = append(out.Revisions, revision)
	}
	return out, nil
}

// hashOfScript returns the beginning of a script's SHA-256, as sha256sum prints it, and nothing if
// there is no script.
func hashOfScript(script string) string {
	if script == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(script))
	return hex.EncodeToString(sum[:6])
}

// Script returns the script of a revision of a class, "namespace/name" or newestRevision.
func (d *Dispatcher) Script(class, name string) (string, error) {
	stored := d.revisionNamed(class, name)
	if stored == nil {
		return "", errNoRevision(class, name)
	}
	src, err := config.StoredSource(stored)
	if err != nil {
		return "", err
	}
	cfg, _ := config.Parse(src, d.Serving.Dispatcher())
	return cfg.Script, nil
}

// Diff returns the difference between the script of a revision of a class and that of the newest,
// as diff -u prints it. It is empty if they are the same.
func (d *Dispatcher) Diff(class, name string) (string, error) {
	old, err := d.Script(class, name)
	if err != nil {
		return "", err
	}
	now, err := d.Script(class, newestRevision)
	if err != nil {
		return "", err
	}
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{
		A: difflib.SplitLines(old), FromFile: name,
		B: difflib.SplitLines(now), ToFile: newestRevision, Context: 3,
	})
}

func errNoRevision(class, name string) error {
	return fmt.Errorf("the class %s has no config revision %s: kubectl flex history lists them", class, name)
}

// revisionsOf returns the stored revisions of a class, the newest first.
func (d *Dispatcher) revisionsOf(class string) []*appsv1.ControllerRevision {
	stored := d.caches.Revisions.By(cluster.ByClass, config.ClassLabel(class))
	return slices.SortedFunc(slices.Values(stored), func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(b.Revision, a.Revision), cmp.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name))
	})
}

// newestRevision stands for the newest revision of a volume's class.
const newestRevision = "newest"

// Move moves the volume of a PV to another config revision of its class, "namespace/name" or
// newestRevision, and returns which. It refuses where a delete could go to another storage, in
// which it would find nothing and end with success. With dryRun it writes nothing.
func (d *Dispatcher) Move(ctx context.Context, name, to string, dryRun bool) (string, error) {
	pv := d.caches.PVs.Named(name)
	if pv == nil {
		return "", fmt.Errorf("the PersistentVolume %s does not exist", name)
	}
	resolver, err := d.resolver()
	if err != nil {
		return "", err
	}
	target := d.revisionNamed(pv.Spec.StorageClassName, to)
	if target == nil {
		return "", errNoRevision(pv.Spec.StorageClassName, to)
	}
	revision := target.Namespace + "/" + target.Name
	if err := d.whyNotMoved(resolver, pv, target); err != nil {
		return revision, fmt.Errorf("the PersistentVolume %s is not moved: %w", name, err)
	}
	if dryRun || pv.Annotations[contract.AnnRevision] == revision {
		return revision, nil
	}
	return revision, admin.Move(ctx, d.Client, pv, revision)
}

// revisionNamed returns a revision of a class, or nil.
func (d *Dispatcher) revisionNamed(class, name string) *appsv1.ControllerRevision {
	stored := d.revisionsOf(class)
	i := slices.IndexFunc(stored, func(r *appsv1.ControllerRevision) bool {
		return name == newestRevision || name == r.Namespace+"/"+r.Name
	})
	if i < 0 {
		return nil
	}
	return stored[i]
}

// whyNotMoved returns why a volume is not moved, or nil.
func (d *Dispatcher) whyNotMoved(resolver resolve.Resolver, pv *corev1.PersistentVolume, to *appsv1.ControllerRevision) error {
	if err := whyNotMade(pv, d.Serving.Provisioner); err != nil {
		return err
	}
	uid := pv.Annotations[contract.AnnClaimUID]
	for _, job := range d.caches.Jobs.By(cluster.ByUID, uid) {
		if !runs.IsFinished(job) || runs.RecordOf(job, uid).Held {
			return fmt.Errorf("the Job %s/%s for its claim is at work, or is still a record: try again when that has ended", job.Namespace, job.Name)
		}
	}
	return whyOtherStorage(resolver, d.caches.Revisions.Named(pv.Annotations[contract.AnnRevision]), to)
}

// whyNotMade returns why the dispatcher of a provisioner has nothing to do with a PV, or nil.
func whyNotMade(pv *corev1.PersistentVolume, provisioner string) error {
	uid := pv.Annotations[contract.AnnClaimUID]
	switch {
	case uid == "" || pv.Name != contract.PVName(uid):
		return fmt.Errorf("it was not made by flex-provisioner: it lacks the annotation %s, or has another name", contract.AnnClaimUID)
	case pvs.OfAnotherProvisioner(pv.Annotations, provisioner):
		return fmt.Errorf("it belongs to the provisioner %s, and this dispatcher serves %s: --dispatcher names the Deployment of another one",
			quote.Name(pv.Annotations[contract.AnnProvisionedBy]), provisioner)
	default:
		return nil
	}
}

// whyOtherStorage returns why a revision may reach another storage than an old one, which may not
// exist, or nil if both certainly reach the same.
func whyOtherStorage(resolver resolve.Resolver, old, to *appsv1.ControllerRevision) error {
	if old == nil {
		return errors.New("its own config revision does not exist, so it is not known whether the other reaches the same storage. If it does, set the annotation " + contract.AnnRevision + " yourself")
	}
	has, gets := resolver.JudgeStored(old), resolver.JudgeStored(to)
	if has.Damaged != nil || gets.Damaged != nil || len(gets.Faults) > 0 {
		return errors.Join(has.Damaged, gets.Damaged, gets.Faults.ToAggregate())
	}
	for _, verb := range has.Config.Verbs {
		if !gets.Config.Supports(verb) {
			return fmt.Errorf("its own config revision lists the verb %s, and the other one does not: the volume could then not be deleted or expanded", verb)
		}
	}
	if !config.SameStorage(has.Config, gets.Config) {
		return errors.New("the two config revisions may reach different storages: more differs than image, script, command, verbs, limits and scheduling. A delete in the wrong storage would " +
			"leave the volume there. If both reach the same storage, set the annotation " + contract.AnnRevision + " yourself")
	}
	return nil
}

func historyCommand(now func() time.Time) *cobra.Command {
	a, show, diff := &asked{}, "", ""
	cmd := &cobra.Command{
		Use:   "history CLASS",
		Short: "List the config revisions of a class, with the volumes that need them",
		Example: "  kubectl flex history gold\n" +
			"  kubectl flex history gold --diff flex-provisioner/gold-27a108b80432ce71",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, stop, err := a.openAsAdmin(cmd.Context())
			if err != nil {
				return err
			}
			defer stop()
			if show != "" || diff != "" {
				return d.printScript(cmd.OutOrStdout(), args[0], show, diff)
			}
			h, err := d.History(args[0])
			if err != nil {
				return err
			}
			printed, err := printObject(cmd.OutOrStdout(), a.output, h)
			if !printed {
				err = (&printer{out: cmd.OutOrStdout(), now: now()}).history(h)
			}
			return err
		},
	}
	a.addFlags(cmd)
	flags := cmd.Flags()
	flags.StringVar(&show, "show", "", "print the script of this revision, NAMESPACE/NAME or "+newestRevision)
	flags.StringVar(&diff, "diff", "", "print what the newest revision has changed in the script of this one")
	cmd.MarkFlagsMutuallyExclusive("show", "diff", "output")
	return cmd
}

// printScript prints the script of a revision, or the difference from the newest.
func (d *Dispatcher) printScript(out io.Writer, class, show, diff string) error {
	get, revision := d.Script, show
	if show == "" {
		get, revision = d.Diff, diff
	}
	text, err := get(class, revision)
	if err != nil {
		return err
	}
	parts := strings.Split(text, "\t") // which quote would change, and a script may need
	for i := range parts {
		parts[i] = quote.Lines(parts[i])
	}
	_, err = io.WriteString(out, strings.Join(parts, "\t"))
	return err
}

func (p *printer) history(h *History) error {
	p.table(func(out io.Writer) {
		rows := &printer{out: out}
		rows.printf("REVISION\tNUMBER\tAGE\tVOLUMES\tJOBS\tSCRIPT\tIMAGE\n")
		for _, r := range h.Revisions {
			rows.printf("%s\t%d\t%s\t%d\t%d\t%s\t%s\n", r.Name, r.Number, duration.HumanDuration(p.now.Sub(r.Created.Time)), r.Volumes, r.Jobs, cmp.Or(r.Script, "-"), cmp.Or(r.Image, "-"))
		}
		p.err = cmp.Or(p.err, rows.err)
	})
	return p.err
}

// moveAll moves volumes, and prints where each is then. It continues after an error.
func (d *Dispatcher) moveAll(cmd *cobra.Command, names []string, to string, dryRun bool) error {
	ctx, stop := context.WithTimeout(cmd.Context(), timeout)
	defer stop()
	var failed error
	for _, name := range names {
		revision, err := d.Move(ctx, strings.TrimPrefix(name, "pv/"), to, dryRun)
		if err == nil {
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "persistentvolume/%s: config revision %s%s\n", name, revision, map[bool]string{true: " (dry run)"}[dryRun])
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

func moveCommand() *cobra.Command {
	a, to, dryRun := &asked{}, "", false
	cmd := &cobra.Command{
		Use:   "move PV... --to REVISION",
		Short: "Move volumes to another config revision of their class",
		Long: "move sets the config revision under which the volumes of PersistentVolumes are deleted\n" +
			"and expanded: after an upgrade, say, so that the image of an old revision is needed no\n" +
			"longer. It moves a volume only if the two revisions certainly reach the same storage,\n" +
			"and no Job for its claim is at work.",
		Example: "  kubectl flex move pvc-6f0c3b1e-2d4a-4c8e-9a57-0b1c2d3e4f50 --to newest --dry-run",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, stop, err := a.openAsAdmin(cmd.Context())
			if err != nil {
				return err
			}
			defer stop()
			return d.moveAll(cmd, args, to, dryRun)
		},
	}
	a.connection.addFlags(cmd.Flags())
	cmd.Flags().StringVar(&to, "to", "", "config revision NAMESPACE/NAME of the volume's class, or "+newestRevision)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "check only, and change nothing")
	_ = cmd.MarkFlagRequired("to") // it exists
	return cmd
}
