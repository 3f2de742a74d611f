// Package run is the loop of a Job: it opens the gate of its pod, cancels it, records how its run ended,
// and releases pod and record, for all claims that the Job serves. It asks each of them one question,
// which decide.Decide answers. An action on the Job says what the claim wants of it: Confirm that it
// still needs the run, Cancel that it does not, RecordOutcome whether the run succeeded, whether its
// record may go and when the next one follows. Any other action is the claim's own, and comes before.
// Nothing else writes on a Job that was created. Start reading at Decide.
package run
