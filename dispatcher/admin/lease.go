package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/patch"
)

// NoteNamespaces notes on the leader's lease which config namespaces are served. It returns the
// lease, and the namespaces that an earlier leader has noted there and that are not served now.
// They stay noted until an administrator removes them. The elector writes on the lease, too:
// whichever write comes late is repeated.
func NoteNamespaces(ctx context.Context, client kubernetes.Interface, namespace, name string, served []string) (lease *coordinationv1.Lease, dropped []string, err error) {
	leases := client.CoordinationV1().Leases(namespace)
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		if lease, err = leases.Get(ctx, name, metav1.GetOptions{}); err != nil {
			return err
		}
		noted := config.NotedNamespaces(lease)
		dropped = slices.DeleteFunc(slices.Clone(noted), func(ns string) bool { return slices.Contains(served, ns) })
		all := slices.Concat(served, dropped)
		slices.Sort(all)
		if all = slices.Compact(all); slices.Equal(all, noted) {
			return nil
		}
		metav1.SetMetaDataAnnotation(&lease.ObjectMeta, config.AnnNamespaces, strings.Join(all, ","))
		_, err = leases.Update(ctx, lease, metav1.UpdateOptions{FieldManager: patch.FieldManager})
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("note the config namespaces on the lease %s/%s: %w", namespace, name, err)
	}
	return lease, dropped, nil
}
