package observe

import (
	"slices"
	"strings"

	storagehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// Namespaces returns the namespaces in which a UID may have Jobs, as far as the caches show. These
// are the dispatcher's --namespace and those of its claim's class, of the revision that made its
// volume, and of the Jobs that were found.
func (b *Observer) Namespaces(o *Observation) []string {
	out := []string{b.Namespace}
	if o.View.Claim == decide.ClaimPending {
		if class := b.Caches.Classes.Named(storagehelpers.GetPersistentVolumeClaimClass(o.Claim)); class != nil {
			out = append(out, config.NamespaceFor(class, b.Namespace))
		}
	}
	if ns, _, named := strings.Cut(o.madeUnder(), "/"); named {
		out = append(out, ns)
	}
	for _, job := range o.Jobs {
		out = append(out, job.Namespace)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// Unserved returns the problem that a config namespace in which a UID may have Jobs is not served
// for now, or nil.
func (b *Observer) Unserved(o *Observation) *decide.Problem {
	mayHaveJobs := b.Namespaces(o)
	for _, ns := range b.Caches.Namespaces() {
		if why := b.Caches.WhyUnserved(ns); why != "" && slices.Contains(mayHaveJobs, ns) {
			return decide.Problemf(reason.NamespaceNotServed, "the claim may have Jobs in the namespace %s: %s", ns, why)
		}
	}
	return nil
}
