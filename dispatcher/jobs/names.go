package jobs

import "github.com/flex-provisioner/flex-provisioner/contract"

// Labels of a Job, and of its pods.
const (
	// LabelMember and a claim's UID are a label, without a value, of every Job that serves the claim, and not of its pods: the API server's time for an
	// object grows with each of its labels, and the pod of a batch is written six times. All Jobs of a claim are found by it.
	LabelMember = "claim." + contract.Domain
	// LabelUIDs is, on the pod of a batch, the hash of its AnnUIDs: a kubelet may write annotations of its pods, and no labels.
	LabelUIDs = AnnUIDs
	// LabelVerb holds the verb of a Job, on the Job and on its pods.
	LabelVerb = contract.Domain + "verb"
)

// AnnUIDs lists, on a Job and on the pod of a batch, the UIDs of the claims that they serve, separated by commas.
const AnnUIDs = contract.Domain + "uids"

// Annotations of a Job, read back as the record of its claim. Those of one claim of a batch have its UID before them, see Annotations.
const (
	// AnnNamespace is the namespace of the claim, since namespaces share slots fairly. Of a batch it is the first
	// claim's.
	AnnNamespace = contract.Domain + "claim-namespace"
	// AnnRequestHash is the hash of what the claim asks for.
	AnnRequestHash = contract.Domain + "request-hash"
	// AnnAttempt is the number of counted runs of this verb for this claim, this one included.
	AnnAttempt = contract.Domain + "attempt"
	// AnnAfter is, on a delete Job, the number of the newest provision Job that it undoes.
	AnnAfter = contract.Domain + "after"
	// AnnVolume is, on a delete Job, the UID of the PV whose volume it deletes. An undo has none.
	AnnVolume = contract.Domain + "volume"
	// AnnClean is "true" on a provision Job before which nothing for the claim can have been in the
	// storage.
	AnnClean = contract.Domain + "clean"
	// AnnWriter is "dispatcher" on a Job whose PV the dispatcher writes, not the container.
	AnnWriter = contract.Domain + "write-pv"
	// AnnNode is the node that the run was meant for, if the claim or the volume names one.
	AnnNode = contract.Domain + "node"
	// AnnNodes is a hash of the nodes that the run must go to, absent if it may go to any.
	AnnNodes = contract.Domain + "nodes"
	// AnnAnywhere is "true" on a Job that runs on any node because the volume's node no longer exists.
	AnnAnywhere = contract.Domain + "any-node"
	// AnnOutcome is the recorded outcome of the run, as JSON.
	AnnOutcome = contract.Domain + "outcome"
	// AnnWaived is "true" for a claim that no longer needs the Job of its batch, which has not started.
	AnnWaived = contract.Domain + "waived"
	// AnnReleased is "true" for a claim whose record in a batch is no longer needed, while another claim's is.
	AnnReleased = contract.Domain + "released"
)

// AnnSince is, on a provision Job, when the first run for the claim was created after which something may be in the storage (RFC 3339).
// Empty: this Job is the first.
const AnnSince = contract.Domain + "since"

// AnnDescribed is, on a provision Job whose PV the dispatcher creates, what its container has said of the PV. It is recorded with the outcome, and
// the PV is created from it by whichever dispatcher leads.
const AnnDescribed = contract.Domain + "described-pv"

// AnnForget is written by an administrator on a Job whose record cannot be undone: the UID of the claim whose record is given up.
const AnnForget = contract.Domain + "forget"

// AnnRival names, on the newest provision Job of a claim and on the claim's PV, another PV that may stand for the same volume. The volume is
// not deleted by itself any more, also when that other PV no longer exists, until an administrator removes the annotation.
const AnnRival = contract.Domain + "rival"

// AnnAudit is, on a delete Job that an administrator's audit has made, the storage's name of the volume that stands for nothing.
const AnnAudit = contract.Domain + "audit"

// MemberAnnotation returns the key under which a Job that serves several claims carries an annotation of one of them.
func MemberAnnotation(uid, annotation string) string { return uid + "." + annotation }

// Annotations of a Job's pod, mounted as files by the downward API.
const (
	AnnRequest = contract.Domain + "request"
	AnnPV      = contract.Domain + "pv"
)

// GateConfirm is the scheduling gate of every pod. The API server binds no pod that has a gate, so no container starts before the dispatcher
// has removed it.
const GateConfirm = contract.Domain + "confirm"

// FinalizerRecord keeps a Job, which is the claim's record, until its volume is proven or undone.
const FinalizerRecord = contract.Domain + "record"

// AnnRescheduled and a claim's UID are the annotation of a provision Job that announces the rescheduling of the claim. Its value is
// the resourceVersion of the claim that is to be rescheduled. Each claim has its own, since a Job may serve several.
const AnnRescheduled = contract.Domain + "rescheduled-"
