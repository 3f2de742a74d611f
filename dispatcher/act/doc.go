// Package act carries out the Actions of decide, for the loops of claims and of Jobs: one write to the
// API, then its event, metric and log line. It is the only package beside admin that writes. It never
// reads: what it needs is in the Observation, and it returns what it learns from a refused write as a
// Hint. Start reading at Actor.Do. Each file holds one kind of action.
package act
