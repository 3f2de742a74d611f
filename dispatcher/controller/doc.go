// Package controller is the loop: handlers turn every change of an object into the UID of a claim
// in one work queue, and into the Job in another. For each UID one worker at a time observes, decides
// and acts. For each Job one worker does what package run says. The package also gathers the members of a batch, and collects config revisions that are not used any more. It
// keeps no state of a claim, and it writes only through act. Start reading at Controller.reconcile.
package controller
