// Package jobs turns a config and a request into a Job: its record, its pod, its environment and
// where it may run. It also judges whether the dispatcher may launch such a pod. It is pure, and it
// does not read Jobs back, which package runs does. Start reading at Build.
package jobs
