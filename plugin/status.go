package plugin

import (
	"cmp"
	"context"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/slots"
)

// Status is how the classes of a dispatcher do.
type Status struct {
	metav1.TypeMeta `json:",inline"`

	// Dispatcher is its Deployment, "namespace/name", with its Image. Leader is the replica that holds
	// the lease, and Idle is why none is at work, empty if one is.
	Dispatcher string  `json:"dispatcher"`
	Image      string  `json:"image"`
	Leader     string  `json:"leader,omitempty"`
	Idle       string  `json:"idle,omitempty"`
	Classes    []Class `json:"classes,omitempty"`
}

// Class is how one class does.
type Class struct {
	Name   string `json:"name"`
	Config string `json:"config,omitempty"` // namespace/name of the ConfigMap
	Image  string `json:"image,omitempty"`
	// Problem is why no claim of the class can be provisioned, empty if they can.
	Problem string `json:"problem,omitempty"`
	// Slots are those of max-parallel, Used are the Jobs that hold one.
	Slots int `json:"slots"`
	Used  int `json:"used"`
	// Bound and Pending count claims. Oldest is the creation of the oldest pending one.
	Bound   int          `json:"bound"`
	Pending int          `json:"pending"`
	Oldest  *metav1.Time `json:"oldest,omitempty"`
	// Causes are why claims are pending that have failed, the most frequent first.
	Causes []Cause `json:"causes,omitempty"`
}

// Cause is why some claims of a class are pending.
type Cause struct {
	Reason string `json:"reason,omitempty"`
	Cause  string `json:"cause"`
	Remedy string `json:"remedy,omitempty"`
	Claims int    `json:"claims"`
	// Example is one of the claims, "namespace/name".
	Example string `json:"example"`
}

// Status says how the classes of the dispatcher do.
func (d *Dispatcher) Status(ctx context.Context) (*Status, error) {
	s := &Status{
		TypeMeta:   metav1.TypeMeta{APIVersion: Version, Kind: "Status"},
		Dispatcher: d.At.String(), Image: d.Image, Leader: d.leader, Idle: d.idle,
	}
	byClass := map[string][]*corev1.PersistentVolumeClaim{}
	for _, claim := range d.caches.Claims.All() {
		name := storagehelpers.GetPersistentVolumeClaimClass(claim)
		byClass[name] = append(byClass[name], claim)
	}
	for _, class := range d.caches.Classes.All() {
		if class.Provisioner != d.Serving.Provisioner {
			continue
		}
		c, err := d.statusOf(ctx, class, byClass[class.Name])
		if err != nil {
			return nil, err
		}
		s.Classes = append(s.Classes, c)
	}
	slices.SortFunc(s.Classes, func(a, b Class) int { return cmp.Compare(a.Name, b.Name) })
	return s, nil
}

// explained is how many pending claims of a class are explained, the oldest first: each costs as
// much as a look of the dispatcher.
const explained = 500

func (d *Dispatcher) statusOf(ctx context.Context, class *storagev1.StorageClass, claims []*corev1.PersistentVolumeClaim) (Class, error) {
	resolver, free, err := d.resolver()
	if err != nil {
		return Class{}, err
	}
	c, today := Class{Name: class.Name}, resolver.Today(class)
	if p := today.Target.Problem; p != nil {
		c.Problem = quote.Lines(p.Note)
	} else {
		c.Config, c.Image, c.Slots = today.Config.Source.Namespace+"/"+today.Config.Source.Name, today.Config.Image, today.Config.MaxParallel
		c.Used = len(free.Holders(slots.KeyOf(today.Config.Source)))
	}
	var pending []*corev1.PersistentVolumeClaim
	for _, claim := range claims {
		if claim.Spec.VolumeName != "" {
			c.Bound++
			continue
		}
		pending = append(pending, claim)
	}
	slices.SortFunc(pending, func(a, b *corev1.PersistentVolumeClaim) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	if c.Pending = len(pending); c.Pending > 0 {
		c.Oldest = timeOf(pending[0].CreationTimestamp.Time)
	}
	c.Causes, err = d.causes(ctx, pending[:min(len(pending), explained)])
	return c, err
}

// causes groups claims by what is in their way.
func (d *Dispatcher) causes(ctx context.Context, pending []*corev1.PersistentVolumeClaim) ([]Cause, error) {
	found := map[string]*Cause{}
	for _, claim := range pending {
		r, err := d.Explain(ctx, claim.UID)
		if err != nil {
			return nil, err
		}
		if r.State != Failed || d.idle != "" {
			continue
		}
		key := cmp.Or(r.Reason, r.Cause)
		if found[key] == nil {
			found[key] = &Cause{Reason: r.Reason, Cause: r.Cause, Remedy: r.Remedy, Example: r.Claim}
		}
		found[key].Claims++
	}
	var out []Cause
	for _, c := range found {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.Claims, a.Claims), cmp.Compare(a.Example, b.Example))
	})
	return out, nil
}

func statusCommand(now func() time.Time) *cobra.Command {
	a := &asked{}
	cmd := &cobra.Command{
		Use:   "status [CLASS...]",
		Short: "Show the classes with their configs, Jobs and waiting claims, and what is in the way of these",
		RunE: func(cmd *cobra.Command, only []string) error {
			d, stop, err := a.openAsAdmin(cmd.Context())
			if err != nil {
				return err
			}
			defer stop()
			s, err := d.Status(cmd.Context())
			if err != nil {
				return err
			}
			if len(only) > 0 {
				s.Classes = slices.DeleteFunc(s.Classes, func(c Class) bool { return !slices.Contains(only, c.Name) })
			}
			printed, err := printObject(cmd.OutOrStdout(), a.output, s)
			if !printed {
				err = (&printer{out: cmd.OutOrStdout(), now: now()}).status(s)
			}
			return cmp.Or(err, s.found())
		},
	}
	a.addFlags(cmd)
	return cmd
}

// found returns ErrFound if anything is wrong.
func (s *Status) found() error {
	if s.Idle != "" || slices.ContainsFunc(s.Classes, func(c Class) bool { return c.Problem != "" || len(c.Causes) > 0 }) {
		return ErrFound
	}
	return nil
}

func (p *printer) status(s *Status) error {
	p.printf("dispatcher %s, image %s, %s leads\n\n", s.Dispatcher, cmp.Or(s.Image, "-"), cmp.Or(s.Leader, "none"))
	p.table(func(out io.Writer) { p.classes(out, s.Classes) })
	for _, c := range s.Classes {
		if c.Problem != "" {
			p.printf("\nclass %s: no claim can be provisioned\n", c.Name)
			p.line("cause", c.Problem)
		}
		for _, cause := range c.Causes {
			p.printf("\nclass %s: %d pending, such as %s%s\n", c.Name, cause.Claims, cause.Example, inParentheses(cause.Reason))
			p.line("cause", cause.Cause)
			p.line("remedy", cause.Remedy)
		}
	}
	if s.Idle != "" {
		p.printf("\n%s, so no claim is served\n", s.Idle)
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
		rows.printf("%s\t%s\t%s\t%d/%d\t%d\t%d\t%s\n", c.Name, cmp.Or(c.Config, "-"), cmp.Or(c.Image, "-"), c.Used, c.Slots, c.Bound, c.Pending, oldest)
	}
	p.err = cmp.Or(p.err, rows.err)
}
