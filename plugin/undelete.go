package plugin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/admin"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/pvs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

func undeleteCommand() *cobra.Command {
	a, to := &asked{}, ""
	cmd := &cobra.Command{
		Use:   "undelete PV|NAMESPACE/CLAIM",
		Short: "Give the volume of a deleted claim to a new claim",
		Long: "undelete creates a claim that is bound to the volume of a deleted one, with its data.\n" +
			"Without --to it has the name of the deleted claim.\n" +
			"It needs the permissions to list and patch PersistentVolumes, to get the namespace, and to get\n" +
			"and create the claim.",
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
	own := to == "" // its claim has the name that it had
	if name = strings.TrimPrefix(name, "pv/"); own && strings.Contains(name, "/") {
		to = name
	}
	claim, err := claimNamed(to)
	if err != nil {
		return "", claim, err
	}
	all, err := client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", claim, fmt.Errorf("list PersistentVolumes: %w", err)
	}
	pv, err := chosen(all.Items, name, claim)
	if err != nil {
		return "", claim, err
	}
	if own {
		claim, err = itsClaim(ctx, client, pv, claim)
	}
	if err == nil {
		err = admin.Undelete(ctx, client, pv, all.Items, claim)
	}
	if err != nil {
		return "", claim, fmt.Errorf("the PersistentVolume %s: %w", pv.Name, err)
	}
	return pv.Name, claim, nil
}

// itsClaim returns the claim that is asked for, or else the deleted one of a PV, which can be created
// again.
func itsClaim(ctx context.Context, client kubernetes.Interface, pv *corev1.PersistentVolume, claim types.NamespacedName) (types.NamespacedName, error) {
	if ref := pv.Spec.ClaimRef; claim.Name == "" && ref != nil {
		claim = types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	}
	return claim, whyNotItsNamespace(ctx, client, pv, claim.Namespace)
}

// whyNotItsNamespace returns an error if the namespace is another one of that name than the deleted
// claim's was: its owner may be another.
func whyNotItsNamespace(ctx context.Context, client kubernetes.Interface, pv *corev1.PersistentVolume, name string) error {
	ns, err := client.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	switch at := pv.Status.LastPhaseTransitionTime; {
	case apierrors.IsNotFound(err):
		return nil // the claim cannot be created in it, either
	case err != nil:
		return fmt.Errorf("get the namespace %s: %w", quote.Name(name), err)
	case pvs.IsReleased(pv) && at != nil && at.Before(&ns.CreationTimestamp):
		return fmt.Errorf("the namespace %s was created after its claim was deleted, and may have another owner. "+
			"Name the new claim by --to to give it the data", quote.Name(name))
	default:
		return nil
	}
}

// claimNamed returns the claim NAMESPACE/NAME, or none without a name.
func claimNamed(name string) (types.NamespacedName, error) {
	namespace, of, _ := strings.Cut(name, "/")
	if name != "" && (namespace == "" || of == "") {
		return types.NamespacedName{}, fmt.Errorf("the claim %s: must have the form NAMESPACE/NAME", quote.Name(name))
	}
	return types.NamespacedName{Namespace: namespace, Name: of}, nil
}

// chosen returns the PV of a name, or the one of a deleted claim. What an earlier call has reserved
// for the new claim comes first: the same call completes it, whatever else was deleted since.
func chosen(all []corev1.PersistentVolume, name string, to types.NamespacedName) (*corev1.PersistentVolume, error) {
	if !strings.Contains(name, "/") {
		i := slices.IndexFunc(all, func(pv corev1.PersistentVolume) bool { return pv.Name == name })
		if i < 0 {
			return nil, fmt.Errorf("no PersistentVolume has the name %s", quote.Name(name))
		}
		return &all[i], nil
	}
	var found, reserved []*corev1.PersistentVolume
	var names []string
	for i := range all {
		if pv := &all[i]; isReleasedOf(pv, name) {
			found, names = append(found, pv), append(names, pv.Name)
			if admin.IsReservedFor(pv, to) {
				reserved = append(reserved, pv)
			}
		}
	}
	switch {
	case len(reserved) == 1:
		return reserved[0], nil
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, severalOf(name, names)
	default:
		return nil, fmt.Errorf("no PersistentVolume is Released of a claim %s", quote.Name(name))
	}
}

func severalOf(claim string, names []string) error {
	return fmt.Errorf("several claims %s were deleted. Name one of their PersistentVolumes: %s",
		quote.Name(claim), strings.Join(names, ", "))
}

// isReleasedOf reports whether a PV is released of a claim, or reserved with its volume or for one of
// its name.
func isReleasedOf(pv *corev1.PersistentVolume, claim string) bool {
	if pv.Annotations[contract.AnnClaimUID] == "" || pv.Spec.ClaimRef == nil {
		return false
	}
	return (pvs.IsReleased(pv) || pvs.IsReserved(pv)) && (admin.ClaimOf(pv) == claim || admin.DeletedClaimOf(pv) == claim)
}
