// Package act carries out what decide has decided: one write to the API, then its event, metric and log line. It is the only package beside
// admin that writes. It never reads: what it needs is in the Observation, and what it learns from a refused write it returns as a Hint.
// Start reading at Actor.Do; a file holds one kind of action.
package act
