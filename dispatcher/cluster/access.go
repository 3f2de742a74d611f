package cluster

import "sync"

// access is which permissions the dispatcher lacks in config namespaces.
type access struct {
	mu      sync.Mutex
	missing map[string]string // by namespace
}

func (a *access) missingIn(namespace string) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.missing[namespace]
}

// SetMissing records which permissions the dispatcher lacks in a config namespace, empty for none. It reports whether
// that has changed.
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

// WhyUnserved returns why no config of a namespace can be served now, or nothing if they can.
func (c *Caches) WhyUnserved(namespace string) string {
	s, watched := c.namespaces[namespace]
	missing := c.access.missingIn(namespace)
	switch {
	case !watched:
		return "the dispatcher does not serve it: add it to --config-namespaces"
	case missing != "":
		// The list comes last: it is long where the whole RoleBinding is missing, and an event's note has an end.
		return "the dispatcher lacks permissions there. Create the namespace and its RoleBinding, as deploy/base/dispatcher-rbac.yaml does for the " +
			"dispatcher's own, or take it out of --config-namespaces. Missing: " + missing
	case !s.isSynced():
		return "the dispatcher has not read its objects yet"
	default:
		return ""
	}
}

func (s namespaced) isSynced() bool {
	for _, has := range s.synced {
		if !has() {
			return false
		}
	}
	return true
}
