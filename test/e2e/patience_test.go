//go:build e2e && !kernels

package e2e

// patience is by how much longer everything may take than on a machine that is busy.
const patience = 1
