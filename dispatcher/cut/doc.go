// Package cut reduces the objects of the API server to what the dispatcher reads of them. The
// caches hold every claim and every PV of the cluster, on every replica, and users write claims. An
// object that was cut is never written back: writes are patches. Start reading at Object.
package cut
