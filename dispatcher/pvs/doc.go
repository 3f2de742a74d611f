// Package pvs answers questions about a PersistentVolume: whether it proves a provision and fits
// its claim, whether a claim can ever have been bound to it, and which nodes reach its volume. It
// also builds the PV of a request without its volume source. It is pure, and it decides nothing.
// Start reading at Skeleton and Mismatch.
package pvs
