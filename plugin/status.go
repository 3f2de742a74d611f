package plugin

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/duration"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/slots"
)

// Status is how the classes of a dispatcher do.
type Status struct {
	metav1.TypeMeta `json:",inline"`

	// Dispatcher is its Deployment, "namespace/name", with its Image. Leader is the replica that
	// holds the lease, and Idle is why none is at work, empty if one is.
	Dispatcher string  `json:"dispatcher"`
	Image      string  `json:"image"`
	Leader     string  `json:"leader,omitempty"`
	Idle       string  `json:"idle,omitempty"`
	Classes    []Class `json:"classes,omitempty"`
	// Volumes is how full the volumes are whose storages tell it, if that was asked for.
	Volumes []audit.Usage `json:"volumes,omitempty"`
	// listed is set if all storages were listed for it.
	listed bool
}

// Class is how one class does.
type Class struct {
	Name   string `json:"name"`
	Config string `json:"config,omitempty"` // namespace/name of the ConfigMap
	Image  string `json:"image,omitempty"`
	// Problem is why no claim of the class can be provisioned, empty if they can. Warning is why
	// the last valid config revision serves the class, and not what its ConfigMap says now.
	Problem string `json:"problem,omitempty"`
	Warning string `json:"warning,omitempty"`
	// Slots are those of max-parallel, Used are the Jobs that hold one.
	Slots int `json:"slots"`
	Used  int `json:"used"`
	// Bound and Pending count claims. Oldest is the creation of the oldest pending one.
	Bound   int          `json:"bound"`
	Pending int          `json:"pending"`
	Oldest  *metav1.Time `json:"oldest,omitempty"`
	// Unclassed counts the PersistentVolumes of a class that no longer exists, or that another
	// provisioner has now. Of any other class it is 0.
	Unclassed int `json:"unclassed,omitempty"`
	// States counts the claims that are explained by their ClaimState.
	States map[string]int `json:"states,omitempty"`
	// Causes are why claims are pending that have failed, why volumes are not deleted and why
	// others do not grow, the most frequent first.
	Causes []Cause `json:"causes,omitempty"`
}

// Cause is what is in the way of some claims of a class, or of the deletion of their volumes.
type Cause struct {
	Reason string `json:"reason,omitempty"`
	Cause  string `json:"cause"`
	Remedy string `json:"remedy,omitempty"`
	Claims int    `json:"claims"`
	// Example is one of the claims, "namespace/name", or "pv/NAME" if that no longer exists.
	Example string `json:"example"`
}

// Status says how the classes of the dispatcher do, or those that are named. A class that no longer
// exists is among them as long as it has volumes.
func (d *Dispatcher) Status(ctx context.Context, only ...string) (*Status, error) {
	volumes := d.volumes()
	for _, name := range only {
		if d.class(name) == nil && len(volumes[name]) == 0 {
			return nil, fmt.Errorf("no StorageClass with the provisioner %s has the name %s", d.Serving.Provisioner, quote.Name(name))
		}
	}
	s := &Status{
		TypeMeta:   metav1.TypeMeta{APIVersion: Version, Kind: "Status"},
		Dispatcher: d.At.String(), Image: d.Image, Leader: d.leader, Idle: d.idle,
	}
	names := slices.Collect(maps.Keys(volumes))
	for _, class := range d.caches.Classes.All() {
		if class.Provisioner == d.Serving.Provisioner {
			names = append(names, class.Name)
		}
	}
	slices.Sort(names)
	claims := d.claims()
	for _, name := range slices.Compact(names) {
		if len(only) > 0 && !slices.Contains(only, name) {
			continue
		}
		c, err := d.statusOf(ctx, name, claims[name], volumes[name])
		if err != nil {
			return nil, err
		}
		s.Classes = append(s.Classes, c)
	}
	return s, nil
}

// class returns a StorageClass of the dispatcher's, or nil.
func (d *Dispatcher) class(name string) *storagev1.StorageClass {
	if class := d.caches.Classes.Named(name); class != nil && class.Provisioner == d.Serving.Provisioner {
		return class
	}
	return nil
}

// claims returns all claims by their class.
func (d *Dispatcher) claims() map[string][]*corev1.PersistentVolumeClaim {
	out := map[string][]*corev1.PersistentVolumeClaim{}
	for _, claim := range d.caches.Claims.All() {
		name := storagehelpers.GetPersistentVolumeClaimClass(claim)
		out[name] = append(out[name], claim)
	}
	return out
}

// volumes returns the PVs of the dispatcher by their class.
func (d *Dispatcher) volumes() map[string][]*corev1.PersistentVolume {
	out := map[string][]*corev1.PersistentVolume{}
	for _, pv := range d.caches.PVs.All() {
		if whyNotMade(pv, d.Serving.Provisioner) == nil {
			out[pv.Spec.StorageClassName] = append(out[pv.Spec.StorageClassName], pv)
		}
	}
	return out
}

// explained is how many claims of a class are explained, the oldest pending ones first: each costs
// as much as a look of the dispatcher.
const explained = 500

func (d *Dispatcher) statusOf(ctx context.Context, name string, claims []*corev1.PersistentVolumeClaim, volumes []*corev1.PersistentVolume) (c Class, err error) {
	c.Name = name
	if class := d.class(name); class != nil {
		err = d.addConfig(&c, class)
	} else { // its other claims are of another provisioner, or were never served
		c.Unclassed, claims = len(volumes), withVolume(claims, volumes)
	}
	if err != nil {
		return c, err
	}
	var pending []*corev1.PersistentVolumeClaim
	var toDelete, others []types.UID
	for _, claim := range claims {
		switch {
		case claim.Status.Phase != corev1.ClaimBound:
			pending = append(pending, claim)
			continue
		case pvs.WantsMore(claim) || len(claim.Status.AllocatedResourceStatuses) > 0:
			others = append(others, claim.UID)
		}
		c.Bound++
	}
	for _, pv := range volumes {
		if pv.DeletionTimestamp != nil || pvs.IsReleased(pv) {
			toDelete = append(toDelete, types.UID(pv.Annotations[contract.AnnClaimUID]))
		}
	}
	uids := slices.Concat(c.addPending(pending), toDelete, others)
	err = d.addCauses(ctx, &c, uids[:min(len(uids), explained)])
	return c, err
}

// withVolume returns those of some claims that have one of some volumes.
func withVolume(claims []*corev1.PersistentVolumeClaim, volumes []*corev1.PersistentVolume) []*corev1.PersistentVolumeClaim {
	made := map[string]bool{}
	for _, pv := range volumes {
		made[pv.Name] = true
	}
	return slices.DeleteFunc(claims, func(claim *corev1.PersistentVolumeClaim) bool { return !made[claim.Spec.VolumeName] })
}

// addConfig says by which config a class is served, or why by none.
func (d *Dispatcher) addConfig(c *Class, class *storagev1.StorageClass) error {
	resolver, err := d.resolver()
	if err != nil {
		return err
	}
	present := resolver.AtPresent(class)
	if p := present.Target.Problem; p != nil {
		c.Problem = quote.Lines(p.Note.String())
	} else {
		c.Config, c.Image, c.Slots = present.Config.Source.Namespace+"/"+present.Config.Source.Name, quote.Name(present.Config.Image), present.Config.MaxParallel
		c.Used = d.slots().Used(slots.KeyOf(present.Config.Source), c.Slots)
	}
	if old := present.Fallback; old != nil {
		c.Warning = quote.Lines(old.Note.String())
	}
	return nil
}

// addPending counts the pending claims of a class, and returns their UIDs, the oldest first.
func (c *Class) addPending(pending []*corev1.PersistentVolumeClaim) (uids []types.UID) {
	slices.SortFunc(pending, func(a, b *corev1.PersistentVolumeClaim) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	if c.Pending = len(pending); c.Pending > 0 {
		c.Oldest = timeOf(pending[0].CreationTimestamp.Time)
	}
	for _, claim := range pending {
		uids = append(uids, claim.UID)
	}
	return uids
}

// addCauses counts claims by their state, and groups them by what is in their way.
func (d *Dispatcher) addCauses(ctx context.Context, c *Class, uids []types.UID) error {
	found := map[string]*Cause{}
	c.States = map[string]int{}
	for _, uid := range uids {
		r, err := d.Explain(ctx, uid)
		if err != nil {
			return err
		}
		c.States[r.ClaimState]++
		if r.State != Failed || d.idle != "" {
			continue
		}
		key := cmp.Or(r.Reason, r.Cause) + "\n" + r.failed // a full storage and a refused login have the same reason
		if found[key] == nil {
			found[key] = &Cause{Reason: r.Reason, Cause: r.Cause, Remedy: r.Remedy, Example: r.example()}
		}
		found[key].Claims++
	}
	for _, cause := range found {
		c.Causes = append(c.Causes, *cause)
	}
	slices.SortFunc(c.Causes, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.Claims, a.Claims), cmp.Compare(a.Example, b.Example))
	})
	return nil
}

func statusCommand(now func() time.Time) *cobra.Command {
	a, volumes := &asked{}, false
	cmd := &cobra.Command{
		Use:     "status [CLASS...]",
		Short:   "Show the classes with their Jobs and waiting claims, and what is in the way of these",
		Example: "  kubectl flex status\n  kubectl flex status gold --output=json",
		RunE: func(cmd *cobra.Command, only []string) error {
			ctx, end := context.WithTimeout(cmd.Context(), timeout)
			defer end()
			d, stop, err := a.openAsAdmin(ctx)
			if err != nil {
				return err
			}
			defer stop()
			s, err := d.Status(ctx, only...)
			if err != nil {
				return err
			}
			var unlisted error
			if volumes {
				if s.Volumes, unlisted = a.volumes(cmd, only); unlisted != nil && cmd.Context().Err() != nil {
					return unlisted
				}
				s.listed = unlisted == nil
			}
			printed, err := printObject(cmd.OutOrStdout(), a.output, s)
			if !printed {
				err = (&printer{out: cmd.OutOrStdout(), now: now()}).status(s)
			}
			return cmp.Or(err, unlisted, s.found())
		},
	}
	a.addFlags(cmd)
	cmd.Flags().BoolVar(&volumes, "volumes", false, "show how full the volumes are, where the storage tells it. Jobs list the storages, as with audit --storage")
	return cmd
}

// found returns ErrFound if anything is wrong.
func (s *Status) found() error {
	if s.Idle != "" || slices.ContainsFunc(s.Classes, func(c Class) bool { return c.Problem != "" || c.Warning != "" || len(c.Causes) > 0 }) {
		return ErrFound
	}
	return nil
}

func (p *printer) status(s *Status) error {
	p.printf("dispatcher %s, image %s, %s leads\n\n", s.Dispatcher, cmp.Or(s.Image, "-"), cmp.Or(s.Leader, "none"))
	if len(s.Classes) == 0 {
		p.printf("no StorageClass names its provisioner\n")
	} else {
		p.table(func(out io.Writer) { p.classes(out, s.Classes) })
	}
	for _, c := range s.Classes {
		if c.Problem != "" {
			p.printf("\nclass %s: no claim can be provisioned\n", c.Name)
			p.line("cause", c.Problem)
		}
		if c.Warning != "" {
			p.printf("\nclass %s: the ConfigMap is not used\n", c.Name)
			p.line("cause", c.Warning)
		}
		if c.Unclassed > 0 {
			p.printf("\nclass %s: no StorageClass of this provisioner has the name\n", cmp.Or(c.Name, "-"))
			p.line("cause", fmt.Sprintf("PersistentVolumes of it exist: %d. They are deleted under their own config revisions", c.Unclassed))
		}
		p.states(c)
		for _, cause := range c.Causes {
			p.printf("\nclass %s: %d failed, such as %s%s\n", c.Name, cause.Claims, cause.Example, inParentheses(cause.Reason))
			p.line("cause", cause.Cause)
			p.line("remedy", cause.Remedy)
		}
	}
	switch {
	case len(s.Volumes) > 0:
		p.printf("\n")
		p.table(func(out io.Writer) { p.volumes(out, s.Volumes) })
	case s.listed:
		p.printf("\nno list says how much a volume uses: it may (docs/contract.md#the-list)\n")
	}
	if s.Idle != "" {
		p.printf("\n%s, so no volume is created, expanded or deleted\n", s.Idle)
	}
	return p.err
}

// table prints what is separated by tabs in columns.
func (p *printer) table(rows func(out io.Writer)) {
	out := tabwriter.NewWriter(p.out, 0, 0, 3, ' ', 0)
	rows(out)
	if p.err == nil {
		p.err = out.Flush()
	}
}

func (p *printer) classes(out io.Writer, classes []Class) {
	rows := &printer{out: out}
	rows.printf("CLASS\tCONFIG\tIMAGE\tJOBS\tBOUND\tPENDING\tOLDEST\n")
	for _, c := range classes {
		oldest := "-"
		if c.Oldest != nil {
			oldest = duration.HumanDuration(p.now.Sub(c.Oldest.Time))
		}
		rows.printf("%s\t%s\t%s\t%d/%d\t%d\t%d\t%s\n", cmp.Or(c.Name, "-"), cmp.Or(c.Config, "-"), cmp.Or(c.Image, "-"), c.Used, c.Slots, c.Bound, c.Pending, oldest)
	}
	p.err = cmp.Or(p.err, rows.err)
}
