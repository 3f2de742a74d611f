// Package cluster is what the dispatcher reads of the API server: informers and their indexes, typed lookups in them, and a
// reader of the live objects. It makes no write and no decision, and it knows no rule. Start reading at Caches.
package cluster
