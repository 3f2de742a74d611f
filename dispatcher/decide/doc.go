// Package decide holds the dispatcher's decisions: from the View of one claim's UID, Decide returns
// the one Action to carry out next. It is pure. It has no client, no cache, no clock and no log, so
// a test can walk every combination of facts. Start reading at Decide. Each rule is a function that
// returns an Action, or nil where it does not apply. The files follow the road. decide.go has what
// is on record, and gate.go the runs that have not ended. reclaim.go, undo.go, provision.go and
// expand.go decide what is to become of the volume. retry.go says when the run for it may start.
// What several of them ask of a View stands where it is asked first.
//
// state.go names the states of a run and of a claim. docs/states.md draws how they follow each other.
//
// Gates. Every run is gated first, also one that reclaims, undoes or expands: its pod has a
// scheduling gate, and no container of it starts before the gate is removed (confirmed). A run is
// launched on facts that may be old, or by two leaders at once. It is confirmed when no other pod
// of its claims may run, every other run is on record, and it would be launched again as it is. It
// is cancelled when it would not. Of two gated runs the later one is cancelled. The confirmation of
// a delete deletes the PV, and our finalizer keeps the object until the volume has been deleted.
//
// A PV that carries the UID and that the claim can never be bound to does not prove a provision
// (mismatched). If the PV was never bound, a delete of its volume is launched, whose confirmation
// deletes the PV (discarded). The claim is attempted again when the volume has been deleted. If the
// PV is in use, or its policy is Retain, an event says so, and an administrator decides.
//
// That no claim was ever bound to it needs proof: its own claim still exists, is not bound, and is
// the one that the claimRef names. Once that claim no longer exists, Kubernetes releases the PV,
// and it is reclaimed. A PV whose claimRef has no UID, or that has none, is reported and left
// alone.
//
// Stuck runs. An event on the claim reports a running Job that makes no progress. When no claim
// needs the run any more, its Job is cancelled. The pod is kept for that, and from it the state
// ended finds out whether the container was ever created. A pod that was deleted by force is not
// waited for, and may still run. So nothing is launched or confirmed from any state until the pod's
// own deadline has passed, and longer while its node is lost: only a kubelet that runs ends a pod
// at its deadline. A Job may be the run of several UIDs, each with an outcome of its own. It is
// cancelled when none of them needs it. Of runs that cannot start for the same reason, with the
// same config revision and nodes, only the oldest stays, the probe. The others are cancelled. Their
// claims wait behind the probe, and are launched when it has started or has ended. What only one
// kubelet says is believed of runs on its node: there is a probe for each such node.
//
// Rescheduling. The scheduler selects the node of a claim with WaitForFirstConsumer. The claim
// returns to it when the node has no room or no longer exists, or when no run could start there.
// What a run may have made there is undone before, and the Job of the run announces the return.
//
// On another node the next run starts at once, on the same one when it is due. A claim that comes
// back to a full node before that is announced again without a run, at growing pauses, while
// another node may have room.
//
// Missing nodes. Where the node of the volume no longer exists, reclaiming and undoing follow the
// config: they wait for the node, run on any other, or give the volume up. Giving it up releases
// the record, or removes the PV's finalizer, and an event says so.
//
// Resizing. A claim of a proven volume in use may ask for more (expanding). A size that was begun is
// reached or refused before another one is requested. ResizeStage has the stages. The claim's status
// says that the volume grows before the first run for it is launched. The PV has the size when a run
// has reached it. Then the claim's status says what is left to the node.
package decide
