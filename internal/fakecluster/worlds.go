package fakecluster

// Worlds are behaviours of the real world that a cluster has only where they are asked for, since
// the dispatcher does not survive them yet. With the rule that survives one, its switch becomes the
// rule of every cluster, and goes.
type Worlds struct {
	// ReplacesVanishedPods: a pod that vanishes before the Job controller has counted it, finalizers
	// and all, is replaced at once, and so is one that ends without the tracking finalizer. Without
	// it such a Job fails with BackoffLimitExceeded, which is not what Kubernetes does: in
	// pkg/controller/job/job_controller.go, syncJob adds to status.failed only the finished pods of
	// its lister (getNewFinishedPods, getValidPodsWithFilter: those with the tracking finalizer), so
	// exceedsBackoffLimit is false, and manageJob creates wantActive - terminating - active pods,
	// without a pause, since no failure is in the backoff record.
	ReplacesVanishedPods bool
	// MarksUnknown: a container that was never created has ended with the code 137 and the reason
	// ContainerStatusUnknown when its pod has, without an ID (pkg/kubelet/status/status_manager.go,
	// TerminatePod: of a pod without init containers, always). Without it the container still waits.
	MarksUnknown bool
	// LosesEvents: what a process emits at the moment of its death is lost. client-go's broadcaster
	// (tools/events/event_broadcaster.go, recordToSink) writes events from a queue, and the queue
	// dies with the process.
	LosesEvents bool
}
