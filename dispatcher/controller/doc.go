// Package controller is the loop: handlers turn every change of an object into the UID of a claim in one work queue, and each UID is
// observed, decided and acted upon, by one worker at a time. It adds the members of a batch, and collects config revisions that are out
// of use. It keeps no state of a claim. Start reading at Controller.reconcile.
package controller
