// Package input reads what a run is asked to do, from its argument, its environment and its files,
// and refuses what this image cannot do.
//
// It asks neither a storage nor Kubernetes: the same sources always give the same task. What the
// properties of the class say about a volume or a PV's source is read into the types of the
// packages that use it, volume and mapper.
//
// Start at Read in input.go, and at properties in class.go, the one list of properties.
package input
