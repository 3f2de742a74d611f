// Package reason holds the reason of every event that the dispatcher words itself, each with its
// meaning in a line. docs/configuration.md has a row for each, and docs/troubleshoot.md a heading with
// the remedy; tests compare them. Reasons that come from Kubernetes are passed on as they are. It
// imports nothing of the dispatcher's.
package reason
