// Package logsink keeps what is logged, so that tests can look at it. It imports nothing of ours.
// Start reading at [Log].
package logsink
