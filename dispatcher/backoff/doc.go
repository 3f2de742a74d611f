// Package backoff holds how long the dispatcher waits after a run that failed. It is pure.
package backoff
