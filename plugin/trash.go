package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/observe"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

// Trashed is the volume of a deleted claim that waits for its delete.
type Trashed struct {
	PersistentVolume string
	Claim            string // namespace/name of the claim that was deleted
	Class, Size      string
	// State is the phase of the PersistentVolume, or Terminating. Only what is Released or reserved can
	// be undeleted. ReservedFor is the claim, namespace/name, that an undelete has yet to create.
	State, ReservedFor string
	Until              time.Time // zero if it is reserved
}

// Trash returns the volumes that wait for their delete, and those that an undelete has reserved for
// a claim that does not exist yet. Those that are due first are at the beginning.
func (d *Dispatcher) Trash(ctx context.Context) ([]Trashed, error) {
	var out []Trashed
	for _, pv := range d.caches.PVs.All() {
		isReserved := pvs.IsReserved(pv)
		if !isReserved && !pvs.IsReleased(pv) || whyNotMade(pv, d.Serving.Provisioner) != nil {
			continue
		}
		t := Trashed{
			PersistentVolume: pv.Name, Claim: admin.DeletedClaimOf(pv), Class: pv.Spec.StorageClassName,
			Size: pv.Spec.Capacity.Storage().String(), State: string(pv.Status.Phase),
		}
		if pv.DeletionTimestamp != nil {
			t.State = "Terminating"
		}
		if isReserved {
			t.ReservedFor = admin.ClaimOf(pv)
			out = append(out, t)
			continue
		}
		o, _, err := d.next(ctx, types.UID(pv.Annotations[contract.AnnClaimUID]), observe.Hint{})
		if err != nil {
			return nil, err
		}
		if t.Until = o.View.Volume.KeptUntil; !t.Until.IsZero() {
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b Trashed) int {
		return cmp.Or(a.Until.Compare(b.Until), cmp.Compare(a.PersistentVolume, b.PersistentVolume))
	})
	return out, nil
}

// Empty makes the deletes of volumes due that wait.
func (d *Dispatcher) Empty(ctx context.Context, trash []Trashed) (failed error) {
	for _, t := range trash {
		pv, err := d.Client.CoreV1().PersistentVolumes().Get(ctx, t.PersistentVolume, metav1.GetOptions{})
		if err == nil && !pvs.IsReleased(pv) {
			err = fmt.Errorf("the PersistentVolume %s is no longer Released", pv.Name)
		}
		if err == nil {
			err = admin.Empty(ctx, d.Client, pv)
		}
		failed = errors.Join(failed, err)
	}
	return failed
}

// Only returns of what waits that which is named, by its PersistentVolume or its claim, and without
// names all. What is to be deleted is not reserved, and its name is that of one volume.
func Only(trash []Trashed, names []string, empty bool) ([]Trashed, error) {
	if empty {
		trash = slices.DeleteFunc(slices.Clone(trash), func(t Trashed) bool { return t.ReservedFor != "" })
	}
	if len(names) == 0 {
		return trash, nil
	}
	var out []Trashed
	for _, name := range names {
		name = strings.TrimPrefix(name, "pv/")
		var found []string
		for _, t := range trash {
			if t.PersistentVolume == name || t.Claim == name {
				out, found = append(out, t), append(found, t.PersistentVolume)
			}
		}
		if len(found) == 0 {
			return nil, fmt.Errorf("no volume of %s waits for its delete", quote.Name(name))
		}
		if empty && len(found) > 1 {
			return nil, severalOf(name, found)
		}
	}
	return out, nil
}

// Deleted says that the volume of a claim which does not exist waits for its delete, or nothing. The
// event that said so exists for an hour. Without a Dispatcher it is not known, and who knows it is said.
func (d *Dispatcher) Deleted(ctx context.Context, claim string) string {
	if d == nil {
		return ". Its volume may be kept. An administrator sees it: " + quote.Command("kubectl", "flex", "trash", claim)
	}
	trash, err := d.Trash(ctx)
	if err != nil || !slices.ContainsFunc(trash, func(t Trashed) bool { return t.Claim == claim || t.ReservedFor == claim }) {
		return ""
	}
	return fmt.Sprintf(". The volume of a deleted claim of this name is kept: %s lists it, and %s gives it to a new claim",
		quote.Command("kubectl", "flex", "trash", claim), quote.Command("kubectl", "flex", "undelete", claim))
}

func trashCommand() *cobra.Command {
	a, empty := &asked{}, false
	cmd := &cobra.Command{
		Use:   "trash [PV|NAMESPACE/CLAIM]...",
		Short: "List the volumes of deleted claims that wait for their delete",
		Long: "trash lists the volumes that the key keep-deleted of their config keeps:\n" +
			"whose they were, how large they are, and until when they are kept.\n" +
			"Those whose STATE is Released or reserved can be undeleted.\n" +
			"With --empty the deletes of those that are listed are due now.",
		Example: "  kubectl flex trash\n  kubectl flex trash shop/data --empty",
		RunE: func(cmd *cobra.Command, args []string) error {
			d, stop, err := a.openAsAdmin(cmd.Context())
			if err != nil {
				return err
			}
			defer stop()
			trash, err := d.Trash(cmd.Context())
			if err != nil {
				return err
			}
			if trash, err = Only(trash, args, empty); err != nil {
				return err
			}
			p := &printer{out: cmd.OutOrStdout()}
			if err = p.trash(trash); err != nil || !empty {
				return err
			}
			if err = d.Empty(cmd.Context(), trash); err == nil && len(trash) > 0 {
				p.printf("The deletes of these volumes (%d) are due now.\n", len(trash))
			}
			return cmp.Or(err, p.err)
		},
	}
	a.connection.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&empty, "empty", false, "delete what is listed now. Only until its delete begins, undelete takes it back")
	return cmd
}

func (p *printer) trash(trash []Trashed) error {
	p.table(func(out io.Writer) {
		rows := &printer{out: out}
		rows.printf("PERSISTENTVOLUME\tCLAIM\tCLASS\tSIZE\tUNTIL\tSTATE\n")
		for _, t := range trash {
			until, state := t.Until.UTC().Format(time.RFC3339), t.State
			if t.ReservedFor != "" {
				until, state = "-", "reserved for "+t.ReservedFor
			}
			rows.printf("%s\t%s\t%s\t%s\t%s\t%s\n", t.PersistentVolume, t.Claim, t.Class, t.Size, until, state)
		}
		p.err = cmp.Or(p.err, rows.err)
	})
	return p.err
}
