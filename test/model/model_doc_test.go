// Package model explores, breadth first, what can happen to one claim's UID: every order of the steps of a leader (or
// two, of which one may pause between its look and its write), the Job controller, the kubelet and the container, the
// binder, the user and an administrator. Each state is a small comparable value. What is visible of it is made into
// real objects and given to the shipped observe and the shipped decide, so no View is written by hand. What an action
// writes is modelled in act_test.go. The laws judge what containers do to the storage. Start reading at explorer.run.
//
// A time is not modelled: a retry is always due, and what is stuck is stuck for long. Of a pod that was deleted by
// force the state says whether its deadline has passed. Not modelled either: batches, slots, lost watches, two caches
// of one leader that differ in age, writes that the API server refuses by policy.
package model
