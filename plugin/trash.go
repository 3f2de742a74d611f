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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

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
	Until            time.Time
}

// Trash returns the volumes that wait for their delete, those that are due first at the beginning.
func (d *Dispatcher) Trash(ctx context.Context) ([]Trashed, error) {
	var out []Trashed
	for _, pv := range d.caches.PVs.All() {
		if !pvs.IsReleased(pv) || whyNotMade(pv, d.Serving.Provisioner) != nil {
			continue
		}
		o, _, err := d.next(ctx, types.UID(pv.Annotations[contract.AnnClaimUID]), observe.Hint{})
		if err != nil {
			return nil, err
		}
		if until := o.View.Volume.KeptUntil; !until.IsZero() {
			ref := pv.Spec.ClaimRef
			out = append(out, Trashed{
				PersistentVolume: pv.Name, Claim: ref.Namespace + "/" + ref.Name, Class: pv.Spec.StorageClassName,
				Size: pv.Spec.Capacity.Storage().String(), Until: until,
			})
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

// only returns of what waits that which is named, by its PersistentVolume or its claim.
func only(trash []Trashed, names []string) ([]Trashed, error) {
	if len(names) == 0 {
		return trash, nil
	}
	var out []Trashed
	for _, name := range names {
		name = strings.TrimPrefix(name, "pv/")
		before := len(out)
		for _, t := range trash {
			if t.PersistentVolume == name || t.Claim == name {
				out = append(out, t)
			}
		}
		if len(out) == before {
			return nil, fmt.Errorf("no volume of %s waits for its delete", quote.Name(name))
		}
	}
	return out, nil
}

func trashCommand() *cobra.Command {
	a, empty := &asked{}, false
	cmd := &cobra.Command{
		Use:   "trash [PV|NAMESPACE/CLAIM]...",
		Short: "List the volumes of deleted claims that wait for their delete",
		Long: "trash lists the volumes that the key keep-deleted of their config keeps: whose they were, how large they are, and until when they are kept.\n" +
			"With --empty the deletes of those that are listed are due now.",
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
			if trash, err = only(trash, args); err != nil {
				return err
			}
			if err = (&printer{out: cmd.OutOrStdout()}).trash(trash); err == nil && empty {
				err = d.Empty(cmd.Context(), trash)
			}
			return err
		},
	}
	a.connection.addFlags(cmd.Flags())
	cmd.Flags().BoolVar(&empty, "empty", false, "delete what is listed now. Nothing undoes this")
	return cmd
}

func (p *printer) trash(trash []Trashed) error {
	p.table(func(out io.Writer) {
		rows := &printer{out: out}
		rows.printf("PERSISTENTVOLUME\tCLAIM\tCLASS\tSIZE\tUNTIL\n")
		for _, t := range trash {
			rows.printf("%s\t%s\t%s\t%s\t%s\n", t.PersistentVolume, t.Claim, t.Class, t.Size, t.Until.UTC().Format(time.RFC3339))
		}
		p.err = cmp.Or(p.err, rows.err)
	})
	return p.err
}

func undeleteCommand() *cobra.Command {
	a, to := &asked{}, ""
	cmd := &cobra.Command{
		Use:   "undelete PV|NAMESPACE/CLAIM",
		Short: "Give the volume of a deleted claim to a new claim",
		Long: "undelete creates a claim that is bound to the volume of a deleted one, with its data. Without --to it has the name of the deleted claim.\n" +
			"It needs the permissions to patch PersistentVolumes and to create the claim.",
		Example: "  kubectl flex undelete shop/data\n  kubectl flex undelete pvc-6f0c3b1e-2d4a-4c8e-9a57-0b1c2d3e4f50 --to shop/data-restored",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, _, err := a.connect()
			if err != nil {
				return err
			}
			client, _, err := clients(cfg)
			if err != nil {
				return err
			}
			ctx, stop := context.WithTimeout(cmd.Context(), timeout)
			defer stop()
			pv, claim, err := Undelete(ctx, client, args[0], to)
			if err == nil {
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "the claim %s has the volume of the persistentvolume/%s\n", claim, pv)
			}
			return err
		},
	}
	a.connection.addFlags(cmd.Flags())
	cmd.Flags().StringVar(&to, "to", "", "NAMESPACE/NAME of the new claim; default: those of the deleted claim")
	return cmd
}

// Undelete gives the volume of a PV, or of a deleted claim, to a new claim, and returns both names.
func Undelete(ctx context.Context, client kubernetes.Interface, name, to string) (string, types.NamespacedName, error) {
	var claim types.NamespacedName
	pv, err := findReleased(ctx, client, strings.TrimPrefix(name, "pv/"))
	if err != nil {
		return "", claim, err
	}
	if ref := pv.Spec.ClaimRef; ref != nil {
		claim = types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	}
	if to != "" {
		namespace, of, named := strings.Cut(to, "/")
		if !named || namespace == "" || of == "" {
			return "", claim, fmt.Errorf("--to=%s: must have the form NAMESPACE/NAME", quote.Name(to))
		}
		claim = types.NamespacedName{Namespace: namespace, Name: of}
	}
	if err := admin.Undelete(ctx, client, pv, claim); err != nil {
		return "", claim, fmt.Errorf("the PersistentVolume %s: %w", pv.Name, err)
	}
	return pv.Name, claim, nil
}

// findReleased returns the PV of a name, or the one that is Released of a deleted claim.
func findReleased(ctx context.Context, client kubernetes.Interface, name string) (*corev1.PersistentVolume, error) {
	namespace, claim, isClaim := strings.Cut(name, "/")
	if !isClaim {
		pv, err := client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return nil, fmt.Errorf("get the PersistentVolume %s: %w", quote.Name(name), err)
		}
		return pv, nil
	}
	all, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list PersistentVolumes: %w", err)
	}
	found := slices.DeleteFunc(all.Items, func(pv corev1.PersistentVolume) bool {
		return !isReleasedOf(&pv, namespace, claim)
	})
	switch len(found) {
	case 0:
		return nil, fmt.Errorf("no PersistentVolume is Released of a claim %s", quote.Name(name))
	case 1:
		return &found[0], nil
	default:
		var names []string
		for _, pv := range found {
			names = append(names, pv.Name)
		}
		return nil, fmt.Errorf("several claims %s were deleted. Name one of their PersistentVolumes: %s", quote.Name(name), strings.Join(names, ", "))
	}
}

// isReleasedOf reports whether a PV is released of a claim, or reserved for one of its name.
func isReleasedOf(pv *corev1.PersistentVolume, namespace, claim string) bool {
	ref := pv.Spec.ClaimRef
	return ref != nil && ref.Namespace == namespace && ref.Name == claim && (ref.UID == "" || pvs.IsReleased(pv))
}
