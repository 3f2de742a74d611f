package fakecluster

import (
	"errors"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// Replay makes what was written in another cluster the past of this one, before anything else is
// written: each object is stored as it was, with its UID, version and times. The test restores what
// was in the storage, and lets time go on to the last change.
func (c *Cluster) Replay(past []Change) {
	c.T.Helper()
	if err := c.Server.locked(func() error { return c.Server.replay(past) }); err != nil {
		c.T.Fatal(err)
	}
	for _, change := range past {
		if pod, isPod := change.Now.(*corev1.Pod); isPod && change.Verb == "create" && len(pod.OwnerReferences) > 0 {
			c.podsMade[pod.OwnerReferences[0].UID]++
		}
	}
}

func (s *Server) replay(past []Change) error {
	if len(s.log) > 0 {
		return errors.New("a cluster in which something was written has a past of its own")
	}
	for i, change := range past {
		change.Old, _ = s.get(change.Key)
		if change.Now != nil {
			change.Now.SetResourceVersion(strconv.Itoa(i + 1))
		}
		s.shelf(change.Resource).put(change.Key, change.Now)
		s.log = append(s.log, change)
	}
	return nil
}
