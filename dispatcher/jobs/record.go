package jobs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/lru"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// AnnRecord holds, on a Job, the records of the claims that it serves, as JSON Lines: a Head, and a
// Record for each claim. A look at one claim of a batch decodes two lines, not 65: decoding all of
// them at every look takes a third of the time of serving a burst.
const AnnRecord = contract.Domain + "record"

// recordVersion is the version of the record. It changes when an older dispatcher must not act on
// the Job: when a field has another meaning, or the Job's request has another version of the
// contract. It also changes when a field is added that must not get lost, since an older dispatcher
// drops it with its next write. In every version the record begins with a line that is an object
// with the version and the sources, and a Job is found by the same labels.
const recordVersion = 1

// Head is the first line of a Job's record: what is asked of a Job without asking for one of its
// claims.
type Head struct {
	Version int `json:"version"`
	// Namespaces are those of the claims, the first claim's first. Namespaces share the slots of a
	// class fairly.
	Namespaces []string `json:"namespaces,omitempty"`
	// Nodes is a hash of the nodes that the run must go to, empty if it may go to any.
	Nodes string `json:"nodes,omitempty"`
	// Scheduling is a hash of where the config says the pod goes, and what it needs there.
	Scheduling string `json:"scheduling,omitempty"`
	// Sources are the PVs whose volumes the Job's runs clone.
	Sources []string `json:"sources,omitempty"`
	// Unrecorded counts the claims whose outcome is not recorded, Held those whose record is not
	// released.
	Unrecorded int `json:"unrecorded"`
	Held       int `json:"held"`
	// Failed counts the claims whose recorded outcome is no success.
	Failed int `json:"failed,omitempty"`
	// Left counts the claims of which something stays in the storage.
	Left int `json:"left,omitempty"`
	// MayRunUntil is until when a container of the Job may still be running by its recorded
	// outcomes. Zero: its node has reported the end.
	MayRunUntil time.Time `json:"mayRunUntil,omitzero"`
}

// Record is what a Job records of one claim that it serves. Nothing about a claim's runs is kept
// anywhere else.
type Record struct {
	ClaimUID string `json:"uid"`
	// Namespace and Name are the claim's. Class and ReclaimPolicy are those under which the run was
	// launched, and Undo says what it was launched for.
	Namespace     string `json:"namespace,omitempty"`
	Name          string `json:"name,omitempty"`
	Class         string `json:"class,omitempty"`
	ReclaimPolicy string `json:"reclaimPolicy,omitempty"`
	Undo          bool   `json:"undo,omitempty"`
	// Size is what was asked for, in bytes.
	Size int64 `json:"size,omitempty"`
	// Hash is the hash of what the claim asks for.
	Hash string `json:"hash,omitempty"`
	// Attempt is the number of counted runs of this verb for the claim, this one included.
	Attempt int `json:"attempt,omitempty"`
	// After is, on a delete, the number of the newest provision Job before it.
	After int `json:"after,omitempty"`
	// Volume is, on a delete, the UID of the PV whose volume it deletes. An undo has none.
	Volume string `json:"volume,omitempty"`
	// NothingBefore is set on a provision before which nothing for the claim can have been in the
	// storage.
	NothingBefore bool `json:"nothingBefore,omitempty"`
	// Since is when the first run for the claim was created after which something may be in the
	// storage. Zero: this run is the first.
	Since time.Time `json:"since,omitzero"`
	// Node is the node that the run was meant for, if the claim or the volume names one. AnyNode is
	// set if it may run on any since that one no longer exists.
	Node    string `json:"node,omitempty"`
	AnyNode bool   `json:"anyNode,omitempty"`
	// DescribesPV is set if the dispatcher creates the PV from the container's output. Described is
	// what the container has said of the PV: it is recorded with the outcome, and the PV is created
	// from it by whichever dispatcher leads.
	DescribesPV bool   `json:"describesPV,omitempty"`
	Described   string `json:"described,omitempty"`
	// Recorded is the recorded outcome, or nil.
	Recorded *Outcome `json:"outcome,omitempty"`
	// Released is set if the claim no longer needs its record, while another claim of the batch
	// does.
	Released bool `json:"released,omitempty"`
	// Returns is how often the claim has been returned to the scheduler since the run, and
	// Rescheduled the resourceVersion of the claim that is to be.
	Returns     Returns `json:"returns,omitzero"`
	Rescheduled string  `json:"rescheduled,omitempty"`
	// LeftBehind is why a volume that was or may have been created for the claim stays in the storage
	// although nothing else records it. Its event is emitted before this is written, and again by each
	// new leader: the events of one that is killed are lost.
	LeftBehind string `json:"leftBehind,omitempty"`
	// Rival is the name of a PV that may stand for the volume, or did, and that proves no run.
	Rival string `json:"rival,omitempty"`
}

// Returns is how often a claim has been returned to the scheduler since a run, and when it was
// last. Only the first return follows the run itself, so no other object could be counted for the
// later ones.
type Returns struct {
	Count int       `json:"count"`
	At    time.Time `json:"at"`
}

// heads are the newest heads, decoded, by their text. Whenever a slot may be free, the heads of all
// Jobs of the class that have one are read: to decode them was a quarter of the dispatcher's work.
var heads = lru.New(2000)

// longestHead is the size in bytes up to which a head is kept so. A batch of claims of many namespaces
// has a longer one.
const longestHead = 1 << 10

// HeadOf returns the head of a Job's record, whose lists must not be changed. It is empty where the
// record is damaged.
func HeadOf(job *batchv1.Job) Head {
	line, _, _ := strings.Cut(job.Annotations[AnnRecord], "\n")
	if kept, known := heads.Get(line); known {
		return kept.(Head)
	}
	var h Head
	if json.Unmarshal([]byte(line), &h) != nil {
		h = Head{}
	}
	if len(line) <= longestHead {
		heads.Add(strings.Clone(line), h) // and not the records of all its claims
	}
	return h
}

// IsNewer reports whether a later dispatcher has written the record of a Job, in a version that this
// one does not know. An upgrade that was rolled back leaves such Jobs.
func IsNewer(job *batchv1.Job) bool { return lastingOf(job).Version > recordVersion }

// lasting is what the head of every version holds.
type lasting struct {
	Version int
	Sources []string
}

// lastingOf returns that of a Job's record, whatever else its head holds, and nothing where that is
// damaged.
func lastingOf(job *batchv1.Job) lasting {
	var head lasting
	line, _, _ := strings.Cut(job.Annotations[AnnRecord], "\n")
	if json.Unmarshal([]byte(line), &head) != nil {
		return lasting{}
	}
	return head
}

// RecordOf returns what a Job records of a claim. It has nothing but the UID where that is damaged.
func RecordOf(job *batchv1.Job, uid string) Record {
	_, after, _ := strings.Cut(job.Annotations[AnnRecord], "\n"+lineOf(uid))
	rest, _, _ := strings.Cut(after, "\n")
	return decodeLine(lineOf(uid)+rest, uid)
}

// SourcesOf returns the PVs whose volumes a Job's runs clone, whatever else its head holds: a volume
// was deleted while the Job of a newer dispatcher copied it.
func SourcesOf(job *batchv1.Job) []string { return lastingOf(job).Sources }

// FirstNamespace returns the namespace of the first claim that a Job serves.
func FirstNamespace(job *batchv1.Job) string {
	if all := HeadOf(job).Namespaces; len(all) > 0 {
		return all[0]
	}
	return ""
}

// lineOf returns how the line of a claim begins: its UID is the first field.
func lineOf(uid string) string { return `{"uid":"` + uid + `"` }

func decodeLine(line, uid string) Record {
	r := Record{}
	if json.Unmarshal([]byte(line), &r) != nil {
		return Record{ClaimUID: uid}
	}
	return r
}

// Records returns the records of all claims that a Job serves, in their order.
func Records(job *batchv1.Job) []Record {
	uids := UIDs(job)
	out := make([]Record, 0, len(uids))
	for _, uid := range uids {
		out = append(out, RecordOf(job, uid))
	}
	return out
}

// ChangedRecords returns the UIDs of the claims whose records differ between two versions of a Job.
func ChangedRecords(old, now *batchv1.Job) []string {
	before := strings.Split(old.Annotations[AnnRecord], "\n")
	var out []string
	for _, line := range strings.Split(now.Annotations[AnnRecord], "\n")[1:] {
		if !slices.Contains(before, line) {
			out = append(out, decodeLine(line, "").ClaimUID)
		}
	}
	return out
}

// ChangeRecords returns the annotation of a Job in which the records of claims are changed. A
// record of a newer version is not changed, since what this dispatcher does not know of it would be
// lost.
func ChangeRecords(job *batchv1.Job, change func(*Record), uids ...string) (map[string]string, error) {
	if IsNewer(job) {
		return nil, fmt.Errorf("the record of the Job %s/%s has the version %d, and this dispatcher knows %d", job.Namespace, job.Name, lastingOf(job).Version, recordVersion)
	}
	all := Records(job)
	for i := range all {
		if slices.Contains(uids, all[i].ClaimUID) {
			change(&all[i])
		}
	}
	text, err := encodeRecords(HeadOf(job), all)
	return map[string]string{AnnRecord: text}, err
}

// encodeRecords returns the text of a Job's record.
func encodeRecords(h Head, all []Record) (string, error) {
	h = Head{Version: recordVersion, Nodes: h.Nodes, Scheduling: h.Scheduling, Sources: h.Sources}
	for _, r := range all {
		if !slices.Contains(h.Namespaces, r.Namespace) {
			h.Namespaces = append(h.Namespaces, r.Namespace)
		}
		h.Held += count(!r.Released)
		h.Unrecorded += count(r.Recorded == nil)
		h.Left += count(r.LeftBehind != "")
		if r.Recorded != nil {
			h.Failed += count(r.Recorded.Verdict != contract.Done)
			h.MayRunUntil = latest(h.MayRunUntil, r.Recorded.MayRunUntil)
		}
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(h)
	for _, r := range all {
		if err == nil {
			err = encoder.Encode(r)
		}
	}
	if err != nil {
		return "", fmt.Errorf("encode the record of a Job: %w", err)
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
