package controller

import (
	"context"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
)

// Kinds of data sources.
const (
	kindClaim    = contract.SourceClaim
	kindSnapshot = "VolumeSnapshot"
)

// grantPause is how soon consent is looked for again.
const grantPause = time.Minute

// Grants tells whether the owner of a namespace lets claims of another copy a claim of his.
type Grants interface {
	// Allows answers for a copy of the claim source into the namespace to. An error is weather.
	Allows(ctx context.Context, source types.NamespacedName, to string) (bool, error)
}

// resolveSource finds what a claim's volume is to be copied from: by its data source, or by the
// annotation of the older provisioner. The source's PV is found through the source claim's binding,
// never through what a user can write: else any volume of the storage could be read.
func (c *Controller) resolveSource(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*contract.Source, *decide.Problem, error) {
	name, p := sourceOf(claim)
	if p != nil || name.Name == "" {
		return nil, p, nil
	}
	obj, found, err := c.caches.claims.GetByKey(name.String())
	if err != nil {
		return nil, nil, err
	}
	if p, err := c.refused(ctx, name, claim.Namespace, found); p != nil || err != nil {
		return nil, p, err
	}
	if !found {
		return nil, problem("SourceNotFound", "the claim asks for a copy of the claim %s, which does not exist", name), nil
	}
	source := obj.(*corev1.PersistentVolumeClaim)
	pv, err := c.volumeOf(ctx, source)
	if err != nil || pv == "" {
		return nil, problem("SourceNotBound", "the claim asks for a copy of the claim %s, which is not bound yet", name), err
	}
	return &contract.Source{Kind: kindClaim, Namespace: name.Namespace, Name: name.Name, UID: string(source.UID), PVName: pv}, nil, nil
}

// volumeOf is the PV that a claim is bound to, or empty. A user can write spec.volumeName on a claim of his;
// whose the PV is, only its claimRef tells.
func (c *Controller) volumeOf(ctx context.Context, claim *corev1.PersistentVolumeClaim) (string, error) {
	pv, err := c.caches.volume(ctx, claim.Spec.VolumeName)
	if err != nil || pv == nil || pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID != claim.UID || claim.Status.Phase != corev1.ClaimBound {
		return "", err
	}
	return pv.Name, nil
}

// refused tells that another namespace does not let its claim be copied. It says the same of a claim that does
// not exist there, so that nobody learns which do; and the name, which a user wrote, goes into a request only
// when a claim has it.
func (c *Controller) refused(ctx context.Context, source types.NamespacedName, to string, found bool) (*decide.Problem, error) {
	if source.Namespace == to {
		return nil, nil //nolint:nilnil // nothing is in the way
	}
	if found {
		if allowed, err := c.consent(ctx, source, to); err != nil || allowed {
			return nil, err
		}
	}
	p := problem("SourceRefused", "the claim asks for a copy of %s in another namespace: that namespace must consent, by a "+
		"gateway.networking.k8s.io ReferenceGrant from PersistentVolumeClaims of %s to the claim", source, to)
	p.RetryAfter = grantPause // grants are not watched
	return p, nil
}

func (c *Controller) consent(ctx context.Context, source types.NamespacedName, to string) (bool, error) {
	if c.opts.Grants == nil {
		return false, nil
	}
	return c.opts.Grants.Allows(ctx, source, to)
}

// sourceOf reads which claim is to be copied, if any.
func sourceOf(claim *corev1.PersistentVolumeClaim) (types.NamespacedName, *decide.Problem) {
	kind, name := "", types.NamespacedName{Namespace: claim.Namespace}
	switch {
	case claim.Spec.DataSourceRef != nil:
		kind, name.Name = claim.Spec.DataSourceRef.Kind, claim.Spec.DataSourceRef.Name
		if ns := claim.Spec.DataSourceRef.Namespace; ns != nil && *ns != "" {
			name.Namespace = *ns
		}
	case claim.Spec.DataSource != nil:
		kind, name.Name = claim.Spec.DataSource.Kind, claim.Spec.DataSource.Name
	}
	if kind == kindSnapshot {
		return name, problem("SnapshotNotSupported", "VolumeSnapshots are made and restored by CSI drivers only: copy a claim instead")
	}
	if asked := claim.Annotations[contract.AnnCloneRequest]; kind == "" && asked != "" {
		name.Name = asked
		if ns, rest, found := strings.Cut(asked, "/"); found {
			name.Namespace, name.Name = ns, rest
		}
	}
	return name, nil
}
