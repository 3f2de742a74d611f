// Package run is the loop of a Job. It opens the gate of the Job's pod, cancels the Job, records how its
// run ended, and frees the pod and releases the record, for all claims that the Job serves. It asks each
// of them one question, which decide.Decide answers: Confirm says that the claim still needs the run,
// Cancel that it does not. RecordOutcome says whether the run succeeded and whether its record may go.
// Any other action is the claim's own, and comes first. Nothing else writes on a Job that was created.
// Start reading at Decide.
package run
