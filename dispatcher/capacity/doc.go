// Package capacity holds what the dispatcher publishes for the scheduler: which CSIStorageCapacity objects a class
// needs, by the nodes that had no room a moment ago, and the CSIDriver without which the scheduler reads none of them.
// It is pure. The dispatcher does not know how much room a storage has, so every node is open until a run has found it
// full. Start reading at Wanted.
package capacity
