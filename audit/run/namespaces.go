package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/audit"
	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
)

// served returns the namespaces in which a dispatcher's Jobs are or were: --namespace and
// --config-namespaces, those that a class, a PV's config revision or the leader's lease names. Whoever
// may create Jobs anywhere else labels one like the dispatcher's. All of these names are
// administrators' or the dispatcher's own: a tenant writes neither classes and PVs nor the lease. It
// keeps the names of the classes.
func (a *Auditor) served(ctx context.Context, s *audit.State) (map[string]bool, error) {
	out := map[string]bool{a.Namespace: true}
	classes, err := a.Client.StorageV1().StorageClasses().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the StorageClasses: %w", err)
	}
	for i := range classes.Items { // also those of other provisioners, whose Jobs may work on the same storage
		out[config.NamespaceFor(&classes.Items[i], a.Namespace)] = true
		s.Classes = append(s.Classes, classes.Items[i].Name)
	}
	lease, err := a.Client.CoordinationV1().Leases(a.Lease.Namespace).Get(ctx, a.Lease.Name, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) { // a dispatcher with --leader-elect=false has none
		return nil, fmt.Errorf("get the Lease %s, which names the config namespaces: %w", a.Lease, err)
	}
	if err == nil {
		for _, ns := range config.NotedNamespaces(lease) {
			out[ns] = true
		}
	}
	for _, ns := range slices.Concat(a.ConfigNamespaces, namespacesOf(s.PVs), namespacesOf(s.Others)) {
		out[ns] = true
	}
	return out, nil
}

// namespacesOf returns the namespaces of the config revisions that PVs name.
func namespacesOf(all []*corev1.PersistentVolume) []string {
	var out []string
	for _, pv := range all {
		if ns, _, ok := strings.Cut(pv.Annotations[contract.AnnRevision], "/"); ok {
			out = append(out, ns)
		}
	}
	return out
}
