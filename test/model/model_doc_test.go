// Package model explores, breadth first, what can happen to one claim's UID: every order of the
// steps of a leader (or two, of which one may pause between its look and its write and have caches
// that are behind), the Job controller, the garbage collector, the kubelet and the container, the
// binder, the user and an administrator. Each state is a small comparable value. What a leader's
// caches show of it is made into real objects and given to the shipped observe and the shipped
// decide, so no View is written by hand. What an action writes is modelled in act_test.go. Most
// laws judge what containers do to the storage (laws_test.go). Those of the ends follow every state
// until nothing happens any more, without people and without failures (ends_test.go). Start reading
// at explorer.run.
//
// Some worlds are hard (hard_test.go): in each Kubernetes, an administrator or a user does what the
// rules did not survive at first.
//
// A time is not modelled: a retry is always due, and what is stuck is stuck for long. Of a volume
// that is kept the state says whether its time is over, and whether a claim had what waits beside
// it for a minute. Of a pod that was deleted by force the state says whether its deadline has
// passed, of a deleted Job without a pod whether one may still appear. A cache of one kind of
// objects is behind as a whole: what shows a pod shows every older one. The first leader's caches
// are never behind. Not modelled either: batches, slots, lost watches, writes that the API server
// refuses by policy or strips.
package model
