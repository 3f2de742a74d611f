// Package queue makes the queues of what is to be reconciled. A simulation decides when one moves on, and which of its items comes next, so that the
// same happens again.
package queue
