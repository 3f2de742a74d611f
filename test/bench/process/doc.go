// Package process starts and ends the programs of a provisioner, and reads what they and the
// control plane use. Start at [Start] and [Samples].
package process
