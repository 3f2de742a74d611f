// Package volume is the domain: what a volume is to a claim, and how one is made, made reachable,
// grown and removed so that every step can be repeated after any interruption.
//
// It may not know a storage or Kubernetes, and imports nothing of this module. A storage is a
// Backend; package cinder is one.
//
// Start at Keeper.Ensure in ensure.go, which makes a claim's volume, and at Keeper.Remove in
// remove.go.
package volume
