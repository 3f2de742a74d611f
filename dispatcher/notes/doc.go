// Package notes words what events tell an administrator: the cause, and the remedy. It imports nothing of ours.
package notes
