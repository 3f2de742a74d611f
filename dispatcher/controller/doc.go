// Package controller is the loop of the claims: handlers turn every change of an object into the UID
// of a claim in one work queue, and into a Job or a class in another. For each UID one worker at a
// time observes, decides and acts. For each Job one worker does what package run says, and for each
// class what package class says: both ask here what is decided for a claim. The package also
// collects config revisions that are not used any more. It keeps no state of a claim, and it writes
// only through act. Start reading at Controller.reconcile.
package controller
