// Package fakecluster plays Kubernetes in tests: an API server, kube-controller-manager, a
// scheduler, kubelets that run scripted images, and the storage that these images provision. It
// knows the contract with images, and nothing of the dispatcher's packages: a test hands it a
// NewDispatcher.
//
// A test lives in a bubble of testing/synctest. Time is fake, and only passes in [Cluster.Until]
// and [Cluster.Advance]: they wait until every dispatcher has nothing left to do, let everything
// else move once, and go on; when nothing moves, time does. The history of all that was written is
// kept, and [Cluster.CheckInvariants] replays it. A simulation steps through a cluster instead
// ([Cluster.Step]): it chooses one of its [Cluster.Moves] at a time, and sleeps when time is to
// pass.
//
// # Nouns
//
//   - [Cluster]: everything but the dispatchers. Its exported fields are what a test may turn: Images, Mounted,
//     NoPodFor, NodeLost, Frozen, Clocks, BinderDown, Cordoned, Choices, Downtime, BeforeJob, BeforePatch.
//   - [Server]: the API server. Its [Change]s are the history, its [Key]s say where objects are stored.
//   - [Process]: one life of a dispatcher, with a client, watches and a death of its own. Any number run at a time.
//   - [Image]: what a container does. [Works], [Script], [Always], [Fails] and [Halfway] make some. It gets a [Run] for
//     each claim and returns an [Exit].
//   - [Event], [Recorder], [Log]: what dispatchers emit and log.
//
// # Verbs
//
//   - Set up: [Test], [Cluster.SetUpGold], [Cluster.CreateClass], [Cluster.CreateConfig], [Cluster.CreateServiceAccount],
//     [Cluster.CreateNode], [Cluster.CreateClaim].
//   - Dispatchers: [Cluster.Start], [Cluster.StartMortal], [Cluster.Stop].
//   - Time: [Cluster.Until], [Cluster.Advance]; or [Cluster.Step] and [Cluster.Moves].
//   - Objects, on anybody's behalf: [List], [Get], [Create], [Update], [Delete], [RemoveFinalizer].
//   - Trouble: [Server.Refuse] (or change), [Server.Overtake] and [Server.LoseAnswer] for requests, [Server.Forbidden] namespaces,
//     [Server.DelayWatches] of all clients or [Process.DelayWatches] of one, [Process.Relist], [Cluster.PowerOff].
//   - What an image does in the storage: [Run.CreateVolume], [Run.DeleteVolume], [Run.ExpandVolume], [Run.WritePV].
//   - Ask: [Cluster.Claim], [Cluster.IsBound], [Cluster.AllBound], [Cluster.PVOf], [Cluster.CreatedJobs],
//     [Cluster.RunsOf], [Cluster.RunningPods], [Cluster.HeldRecords], [Cluster.Empty], [Recorder.About], [Log.Lines].
//   - Check: [Cluster.MustRun], [Cluster.MustEmit], [Cluster.MustEmitSome], [Cluster.MustShow] and the others of must.go.
package fakecluster
