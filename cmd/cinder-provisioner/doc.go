// Command cinder-provisioner is the provisioning image for OpenStack Cinder. It does one verb of
// the contract and exits; the exit code is the verdict.
//
// It holds the flags, and the wiring of input, cinder, volume, pv and run. It decides nothing.
//
// Start at execute in main.go and at work in wire.go.
package main
