// Package play decides what a node without a kubelet does with its pods: a container ends at once
// with success. One of ours has written the PVs of its claims before that, complete with a volume
// source. It is pure. Start at [Of].
package play
