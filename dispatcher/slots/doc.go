// Package slots shares the max-parallel Jobs of a class among the claims that wait for one: the
// queue of a class, fairness between namespaces and verbs, what is offered, and who shares a Job.
// The loop of the class, package class, asks it. It keeps no record, since after a restart every
// claim is reconciled and waits again. It writes nothing to the API. Start reading at Slots. Queue
// is pure.
package slots
