// Package mounts has tests that give the PVs of this project to the programs that mount them: the
// kubelet's own volume plugins, with a host and a mounter that are not real, and real mkfs and
// blkid on files. What a field does, the program says that reads it.
package mounts
