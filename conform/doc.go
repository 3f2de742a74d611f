// Package conform runs the provisioning image of a class through the contract, promise by promise.
// It creates claims as a user does, and the dispatcher that is deployed serves them: each state is
// reached by claims, by pods that are killed, and by an admission policy that refuses the
// PersistentVolumes of this run for a moment. It writes only objects of its own run, most of them in
// a namespace of its own, and deletes only what it has created, never what a list shows: claims and pods
// of Jobs by their UID, its other objects by names that begin with the random one of its namespace, or
// are in it. Start reading at Run.Do and at the table in promises.go.
package conform
