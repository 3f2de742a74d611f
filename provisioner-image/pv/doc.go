// Package pv completes the PersistentVolume, writes it and its Secret, and reads back what a run
// recorded on it.
//
// It knows no storage: what it records is of the domain. The annotations are named after Cinder,
// because users have seen them under these names.
//
// Start at Record in record.go, which is what a later run needs, and at Store in store.go, which
// alone writes to Kubernetes.
package pv
