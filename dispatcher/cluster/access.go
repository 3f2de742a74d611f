package cluster

import (
	"slices"
	"sync"

	"k8s.io/client-go/tools/cache"
)

// access is which permissions the dispatcher lacks in config namespaces.
type access struct {
	mu      sync.Mutex
	missing map[string]string // by namespace
	dropped Dropped
}

// Dropped are config namespaces that an earlier leader served, and this one does not. Claims may
// have Jobs there, which no cache shows.
type Dropped struct {
	Namespaces []string
	// Lease says where they are noted, as "namespace/name".
	Lease string
}

func (a *access) missingIn(namespace string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.missing[namespace]
}

// SetMissing records which permissions the dispatcher lacks in a config namespace, empty for none.
// It reports whether that has changed.
func (c *Caches) SetMissing(namespace, missing string) bool {
	c.access.mu.Lock()
	defer c.access.mu.Unlock()
	if c.access.missing == nil {
		c.access.missing = map[string]string{}
	}
	before := c.access.missing[namespace]
	c.access.missing[namespace] = missing
	return before != missing
}

// SetDropped records which config namespaces were served before, and reports whether that has
// changed.
func (c *Caches) SetDropped(dropped Dropped) bool {
	c.access.mu.Lock()
	defer c.access.mu.Unlock()
	before := c.access.dropped
	c.access.dropped = dropped
	return !slices.Equal(before.Namespaces, dropped.Namespaces)
}

// Dropped returns which config namespaces were served before.
func (c *Caches) Dropped() Dropped {
	c.access.mu.Lock()
	defer c.access.mu.Unlock()
	return c.access.dropped
}

// WhyUnserved returns why no config of a namespace can be served now, or nothing if they can.
func (c *Caches) WhyUnserved(namespace string) string {
	synced, watched := c.namespaces[namespace]
	missing := c.access.missingIn(namespace)
	switch {
	case !watched:
		return "the dispatcher does not serve it. Add it to --config-namespaces, and to what docs/configuration.md#namespaces-of-configs lists"
	case missing != "":
		// The list comes last: it is long where the whole RoleBinding is missing, and an event's
		// note has an end.
		return "the dispatcher lacks permissions there. Create the namespace and its RoleBinding, as deploy/base/dispatcher-rbac.yaml does for " +
			"flex-provisioner, or remove the namespace from --config-namespaces. Missing: " + missing
	case slices.ContainsFunc(synced, func(has cache.InformerSynced) bool { return !has() }):
		return "the dispatcher is still reading its objects"
	default:
		return ""
	}
}
