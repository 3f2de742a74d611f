package jobs

import "github.com/flex-provisioner/flex-provisioner/contract"

// Labels of a Job, and of its pods.
const (
	// LabelMember and a claim's UID are a label, without a value, of every Job that serves the claim, and of
	// its pods: by it all Jobs of a claim are found.
	LabelMember = "claim." + contract.Domain
	// LabelVerb holds the verb of a Job, on the Job and on its pods.
	LabelVerb = contract.Domain + "verb"
)

// Annotations of a Job, read back as the record of its claim.
const (
	// AnnUIDs lists the UIDs of the claims that the Job serves, separated by commas.
	AnnUIDs = contract.Domain + "uids"
	// AnnNamespace is the namespace of the claim: namespaces take turns. Of a batch, the first claim's.
	AnnNamespace = contract.Domain + "claim-namespace"
	// AnnRequestHash is the hash of what the claim asks for.
	AnnRequestHash = contract.Domain + "request-hash"
	// AnnAttempt is the number of counted runs of this verb for this claim, this one included.
	AnnAttempt = contract.Domain + "attempt"
	// AnnAfter is, on a delete Job, the number of the newest provision Job that it undoes.
	AnnAfter = contract.Domain + "after"
	// AnnVolume is, on a delete Job, the UID of the PV whose volume it deletes; empty on an undo.
	AnnVolume = contract.Domain + "volume"
	// AnnClean is "true" on a provision Job before which nothing of the claim's can have been in the
	// storage.
	AnnClean = contract.Domain + "clean"
	// AnnWriter is "dispatcher" on a Job whose container does not write its PV.
	AnnWriter = contract.Domain + "write-pv"
	// AnnNode is the node that the run was meant for, where the claim or the volume names one.
	AnnNode = contract.Domain + "node"
	// AnnAnywhere is "true" on a Job that runs without regard to the volume's node, which has gone.
	AnnAnywhere = contract.Domain + "any-node"
	// AnnOutcome is the outcome of the run, as JSON, written once it was recorded.
	AnnOutcome = contract.Domain + "outcome"
	// AnnWaived is "true" of a claim that does not need its batch, whose Job has not started, any more.
	AnnWaived = contract.Domain + "waived"
	// AnnReleased is "true" of a claim whose record in a batch has done its work, while another's has not.
	AnnReleased = contract.Domain + "released"
)

// MemberAnnotation is the key under which a Job that serves several claims carries an annotation of one of
// them.
func MemberAnnotation(uid, annotation string) string { return uid + "." + annotation }

// Annotations of a Job's pod, mounted as files by the downward API.
const (
	AnnRequest = contract.Domain + "request"
	AnnPV      = contract.Domain + "pv"
)

// FinalizerRecord keeps a Job, which is the claim's record, until its volume is proven or undone.
const FinalizerRecord = contract.Domain + "record"

// AnnRescheduled is the annotation of a provision Job by which this claim, as it was at the resourceVersion that it
// holds, is given back to the scheduler. One claim's own, since a Job may serve several.
func AnnRescheduled(uid string) string { return contract.Domain + "rescheduled-" + uid }
