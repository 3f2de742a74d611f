// Package memory measures what a dispatcher needs in a large cluster. `make bench-memory` runs the
// controller in a process of its own, against a server that makes up the objects while it sends
// them: start reading at TestMemory. It also runs the real program beside others, against a real
// API server: TestMemoryBesideOthers. `make bench-scale` runs the real program against an API
// server that holds 1,000 to 100,000 claims: start reading at TestScale.
package memory_test
