// Package runs reads a Job and its pods back: the record that the Job keeps of each claim that it
// serves, the outcome of a run that has ended, the results of a batch, the PV that a container
// describes, and why a Job makes no progress. It is pure: it has no client and no clock. Start
// reading at RecordOf and ReadFor.
package runs
