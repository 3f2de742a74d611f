package jobs

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/contract"
)

// Record is what a Job says of itself: nothing about a claim's runs is remembered anywhere else.
type Record struct {
	Verb           contract.Verb
	UIDs           []string
	Number         int
	Attempt, After int
	Hash, Revision string
	Node           string
	// Anywhere: the run was launched without regard to that node.
	Anywhere bool
	// Volume is the UID of the PV that a delete is for, empty on an undo.
	Volume string
	// Offers: the PV is the dispatcher's to write, from what the container says.
	Offers bool
	// Clean: before this run nothing of the claim's can have been in the storage.
	Clean bool
	// Settled is the recorded outcome, or nil.
	Settled *Outcome
	// Held: the Job still carries its claim's record.
	Held bool
}

// RecordOf reads a Job of ours. A damaged number reads as 0.
func RecordOf(job *batchv1.Job) Record {
	number := job.Name[strings.LastIndexByte(job.Name, '-')+1:]
	r := Record{
		Verb:     contract.Verb(job.Labels[contract.LabelVerb]),
		UIDs:     strings.Split(job.Annotations[contract.AnnUIDs], ","),
		Number:   atoi(number),
		Attempt:  atoi(job.Annotations[contract.AnnAttempt]),
		After:    atoi(job.Annotations[contract.AnnAfter]),
		Hash:     job.Annotations[contract.AnnRequestHash],
		Revision: job.Annotations[contract.AnnRevision],
		Node:     job.Annotations[contract.AnnNode],
		Anywhere: job.Annotations[contract.AnnAnywhere] == "true",
		Volume:   job.Annotations[contract.AnnVolume],
		Offers:   job.Annotations[contract.AnnWriter] == string(config.DispatcherWrites),
		Clean:    job.Annotations[contract.AnnClean] == "true",
		Held:     slices.Contains(job.Finalizers, contract.FinalizerRecord),
	}
	if text := job.Annotations[contract.AnnOutcome]; text != "" {
		var o Outcome
		if json.Unmarshal([]byte(text), &o) == nil {
			r.Settled = &o
		}
	}
	return r
}

func atoi(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0
	}
	return n
}
