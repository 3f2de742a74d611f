// Package audit judges what exists in a cluster and in its storage: whether each volume,
// PersistentVolume, Secret, record and finalizer stands for something, and what does not for how
// long already. It only reads what it is given.
package audit
