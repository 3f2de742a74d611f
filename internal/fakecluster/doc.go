// Package fakecluster plays Kubernetes, in tests and for kubectl flex try: an API server, kube-controller-manager, a
// scheduler, kubelets that run scripted images, and the storage that these images provision. It
// knows the contract with images, and nothing of the dispatcher's packages: a test hands it a
// NewDispatcher.
//
// A test lives in a bubble of testing/synctest. Time is fake, and only passes in [Cluster.Until]
// and [Cluster.Advance]: they wait until every dispatcher has nothing left to do, let everything
// else move once, and go on; when nothing moves, time does. The history of all that was written is
// kept, and the package test/invariants replays it. A simulation steps through a cluster instead
// ([Cluster.Step]): it chooses one of its [Cluster.Moves] at a time, and sleeps when time is to
// pass.
//
// # Nouns
//
//   - [Cluster]: everything but the dispatchers. Its exported fields are what a test may turn: Images, Mounted,
//     NoPodFor, NodeLost, Ahead, Frozen, CutOff, Clocks, BinderDown, Cordoned, Choices, Downtime, BeforeWrite.
//   - [Worlds]: what a cluster does only where it is asked for, since the dispatcher does not survive it yet.
//   - [Server]: the API server. Its [Change]s are the history, its [Key]s say where objects are stored.
//   - [Process]: one life of a dispatcher, with a client, watches and a death of its own. Any number run at a time.
//   - [Image]: what a container does. [Works], [Script], [Always], [Fails] and [Halfway] make some. It gets a [Run] for
//     each claim and returns an [Exit]. It does it all at once, or in a [Phase] after the other, as [InPhases] does; it
//     may have a sidecar, not be startable, or be rejected by the kubelet.
//   - [Event], [Recorder]: what dispatchers emit. A test that reads what they log sets Log to a sink (test/logsink).
//
// # Verbs
//
//   - Set up: [New] (tests: bubble.Test, bubble.New), [Cluster.SetUpGold], [Cluster.CreateClass], [Cluster.CreateConfig], [Cluster.CreateServiceAccount],
//     [Cluster.CreateNode], [Cluster.CreateClaim].
//   - Dispatchers: [Cluster.Start], [Cluster.StartMortal], [Cluster.Stop].
//   - Time: [Cluster.Until], [Cluster.Advance]; or [Cluster.Step] and [Cluster.Moves].
//   - Objects, on anybody's behalf: [List], [Any], [Get], [Create], [Update], [Delete], [RemoveFinalizer].
//   - The past: [Server.History], and [Cluster.Replay] of what another cluster has written.
//   - Trouble: [Server.Refuse] (or change), [Server.Overtake], [Server.LoseAnswer] and [Server.LoseAnswers] for requests,
//     [Server.Forbidden] namespaces, [Server.DelayWatches] of all clients or [Process.DelayWatches] of one,
//     [Process.Relist], [Cluster.PowerOff].
//   - People: [Cluster.ForceDelete], [Vanish], [Cluster.WriteByHand], [Cluster.AskForClone].
//   - What an image does in the storage: [Run.CreateVolume], [Run.DeleteVolume], [Run.ExpandVolume], [Run.WritePV].
//   - Ask: [Cluster.Claim], [Cluster.IsBound], [Cluster.AllBound], [Cluster.PVOf], [Cluster.CreatedJobs],
//     [Cluster.RunsOf], [Cluster.RunningPods], [Cluster.HeldRecords], [Cluster.Empty], [Recorder.About].
//   - Check: [Cluster.MustRun], [Cluster.MustEmit], [Cluster.MustEmitSome], [Cluster.MustShow] and the others of must.go.
//
// # What it leaves out
//
// Each with the reason why the dispatcher cannot tell the difference, or why another checker has it.
//
//   - Job controller: the condition FailureTarget, which comes before Failed while pods are still terminating
//     (enactJobFinished, delayTerminalCondition). The dispatcher reads Complete and Failed only, and pods beside.
//   - Job controller: status.uncountedTerminatedPods, and the second in which it batches its status. A pod is counted and
//     its finalizer removed later in the same move or in the next, and what vanishes in between is what
//     [Worlds].ReplacesVanishedPods lets vanish before.
//   - Job controller: a Job that is being deleted still gets its condition when its pods end. The dispatcher has to be as
//     careful without the condition, and the model (test/model) has both.
//   - Job controller: indexes, success policies, parallelism, backoff. jobs.Build sets one completion, backoffLimit 0
//     and podReplacementPolicy Failed, and a webhook that changes these is a fault of its own.
//   - Job controller: a suspended Job's pods are not deleted (manageJob, jobSuspended). A test that suspends a Job deletes
//     them itself.
//   - Kubelet: restarts of containers (restartPolicy is Never, and the template may not say otherwise), probes, init
//     containers but for the time they take.
//   - Kubelet: the exit code of a container that is killed is 137 at once: no container ends well in its grace period,
//     unless it ends before. A container with phases works on until the grace period has passed, which is worse.
//   - Garbage collector of pods and taint eviction: an act of the simulation (test/sim), with their conditions.
//   - Attachments: a test sets VolumeAttachments and node.status.volumesInUse. No kubelet attaches anything.
//   - API server: sizes of objects, API priority, admission but for what a test refuses or changes, watches that end with
//     410: a relist is one step, as with client-go's AtomicFIFO.
//   - API server: grace periods. A pod that is deleted keeps deletionGracePeriodSeconds nil, and one without finalizers
//     does not exist any more at once, also while its kubelet ends it: it has the tracking finalizer in every Job.
package fakecluster
