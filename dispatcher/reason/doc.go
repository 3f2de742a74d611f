// Package reason holds the reason of every event that the dispatcher words itself, each with its
// meaning in a line. docs/configuration.md has a row for each, with the remedy, and a test compares
// the two. Reasons that come from Kubernetes are passed on as they are. It imports nothing.
package reason
