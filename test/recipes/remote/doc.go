// Package remote tests the recipes whose storage is another machine, without a cluster and without
// that machine: the scripts run as they are shipped, with the real flex, against an API server, an
// appliance, and a box behind ssh that are played here.
//
// In the lab the same programs play what its kernel does not have, on a box with a real sshd:
// lab_test.go.
//
// A recipe is an entry of recipes_test.go, and most tests run for each of them. Start at
// world_test.go.
package remote
