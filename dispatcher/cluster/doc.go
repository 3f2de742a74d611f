// Package cluster reads the API server for the dispatcher: informers and their indexes, typed
// lookups in them, and a reader of the live objects. It writes nothing and decides nothing. Start
// reading at Caches and Reader.
package cluster
