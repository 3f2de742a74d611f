// Package mapper turns how Cinder says that a volume is connected into a volume source of a
// PersistentVolume, and its credentials into a Secret. Each mapper knows one kind of connection;
// kinds in mapper.go is the one list of them.
//
// It asks neither a storage nor Kubernetes, and writes nothing.
//
// Start at Map and Check in mapper.go. What a source can promise about access modes is in want.go.
package mapper
