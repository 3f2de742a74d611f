package jobs

import "github.com/flex-provisioner/flex-provisioner/contract"

// Labels of a Job, and of its pods.
const (
	// LabelMember and a claim's UID are a label, without a value, of every Job that serves the
	// claim. Its pods do not have it: the API server's time for an object grows with each of its
	// labels, and the pod of a batch is written six times. All Jobs of a claim are found by it.
	LabelMember = "claim." + contract.Domain
	// LabelUIDs is, on the pod of a batch, the hash of its AnnUIDs: a kubelet may write annotations
	// of its pods, and no labels.
	LabelUIDs = AnnUIDs
	// LabelSource and the SourceKey of a PV are a label, without a value, of every pod that clones the
	// PV's volume, and of its Job. All that may clone it are found by it, also where the Job was
	// removed.
	LabelSource = "source." + contract.Domain
	// LabelParallel holds, on a Job and its pods, how many scripts flex runs at a time in the pod,
	// where those are more than one. A kubelet writes no labels of its pods.
	LabelParallel = contract.Domain + "parallel"
	// LabelVerb holds the verb of a Job, on the Job and on its pods.
	LabelVerb = contract.Domain + "verb"
)

// AnnUIDs lists, on a Job and on the pod of a batch, the UIDs of the claims that they serve,
// separated by commas.
const AnnUIDs = contract.Domain + "uids"

// AnnForget is written by an administrator on a Job whose record cannot be undone: the UID of the
// claim whose record is given up.
const AnnForget = contract.Domain + "forget"

// AnnRetry is written by an administrator on the newest Job of a claim, with any value: what follows
// its run follows at once, also after the last attempt of max-attempts.
const AnnRetry = contract.Domain + "retry"

// Annotations of a Job's pod, mounted as files by the downward API.
const (
	AnnRequest = contract.Domain + "request"
	AnnPV      = contract.Domain + "pv"
	AnnScript  = contract.Domain + "script"
)

// GateConfirm is the scheduling gate of every pod. The API server binds no pod that has a gate, so
// no container starts before the dispatcher has removed it.
const GateConfirm = contract.Domain + "confirm"

// AnnConfirmed holds, on a Job, the UID of its pod that was confirmed, the only one that may have
// run. The Job controller creates another when a pod is deleted with its finalizers before it was
// counted (manageJob in pkg/controller/job/job_controller.go: only pods that have been counted as
// failed are held against the limit).
const AnnConfirmed = GateConfirm

// FinalizerRecord keeps a Job, which is the claim's record, until its volume is proven or undone.
const FinalizerRecord = contract.Domain + "record"
