package fakecluster

import corev1 "k8s.io/api/core/v1"

// RunsOfPod returns what the containers of a pod do.
func (c *Cluster) RunsOfPod(pod *corev1.Pod) []*Run { return c.runsOf(pod) }
