// Package claim is the loop of the claims: for each UID one worker at a time observes, decides and
// acts. It alone writes claims and PVs. The loops of the Jobs and of the classes ask it what is
// decided for a claim. It keeps no state of a claim but hints, which may be lost at any time. Start
// reading at Loop.Reconcile.
package claim
