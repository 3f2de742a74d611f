// Package pvs answers questions about a PersistentVolume: whether it proves a provision, whether it
// fits its claim, whether a claim can ever have been bound to it, and from which nodes its volume
// is reachable. It also builds the PV of a request without its volume source. It is pure, and it
// decides nothing. Start reading at Skeleton and Mismatch.
package pvs
