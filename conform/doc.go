// Package conform runs the provisioning image of a class through the contract, promise by promise.
// It creates claims as a user does, and the dispatcher that is deployed serves them. It reaches
// each state by claims, by killing pods, and by an admission policy that refuses the
// PersistentVolumes of this run for a moment. It writes only objects of its own run, most of them
// in a namespace of its own. It deletes only what it has created, and never what a list shows:
// claims and pods of Jobs by their UID, and its other objects by their names. These are in its
// namespace, or begin with its random name. Start reading at Run.Do and at the table in
// promises.go.
package conform
