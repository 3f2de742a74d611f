// Package run does one run of one verb, and turns how it ended into an exit code and a message.
//
// It knows no particular storage: what it needs of one is in a volume.Keeper. It reads no
// environment, file or flag.
//
// Start at Run in run.go. Each verb has a file; provision.go has the order of the steps, verdict.go
// the exit codes and message.go the sentences.
package run
