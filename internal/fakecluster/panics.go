package fakecluster

// checkPanics checks that no dispatcher has panicked. What a panic concerns is tried again, so that
// nothing else may show it.
func (c *Cluster) checkPanics() {
	if n := c.Log.Count("Recovered from a panic"); n > 0 && !c.Panics {
		c.T.Errorf("dispatchers have panicked %d times", n)
	}
}
