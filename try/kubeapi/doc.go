// Package kubeapi is the API server that a provisioner's script finds around itself outside a
// cluster: HTTPS on loopback, with the files of a ServiceAccount. What the script may write in a
// cluster (PersistentVolumes and the Secrets of one namespace), it hands to a client, and what the
// client answers is its answer, with the Status of a refusal.
//
// It has no objects, no validation and no admission: those are the client's. It leaves out of a real
// API server every other resource and verb (also list, watch, update and patch), which it forbids,
// every encoding but JSON, the options of a deletion, which it refuses, the options of a GET, which
// it ignores, and the warnings of a request that is not strict.
package kubeapi
