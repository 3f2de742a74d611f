// Package runs reads a Job and its pods back. It finds the record of each claim that the Job
// serves, the outcome of a run that has ended, the results of a batch, and the PV that a container
// describes. It also finds why a Job makes no progress. It is pure: it has no client and no clock.
// Start reading at RecordOf and ReadFor.
package runs
