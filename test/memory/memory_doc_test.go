// Package memory measures how much memory a dispatcher needs in a large cluster: `make bench-memory`. It runs the controller in a process of its own,
// against a server that makes up the objects while it sends them. Start reading at TestMemory.
package memory_test
