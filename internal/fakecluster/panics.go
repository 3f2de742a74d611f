package fakecluster

// panics is the series in which dispatchers count the panics from which they have recovered.
const panics = "flex_dispatcher_panics_total"

// checkPanics checks that no dispatcher has panicked. What a panic concerns is tried again, so that nothing else may show it.
func (c *Cluster) checkPanics() {
	for i, registry := range c.registries {
		families, err := registry.Gather()
		if err != nil {
			c.T.Errorf("gather the metrics of dispatcher %d: %v", i+1, err)
		}
		for _, family := range families {
			if family.GetName() != panics || c.Panics {
				continue
			}
			if n := family.GetMetric()[0].GetCounter().GetValue(); n > 0 {
				c.T.Errorf("dispatcher %d has panicked %v times", i+1, n)
			}
		}
	}
}
