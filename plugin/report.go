package plugin

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Version is the version of the commands' output as JSON. Fields may be added to it.
const Version = "cli.flex-provisioner.io/v1alpha1"

// State is how a claim, or a volume that is to be deleted, is doing.
type State string

// The states.
const (
	OK      State = "ok"      // nothing is to be done
	Working State = "working" // the dispatcher, a run or Kubernetes is at work, as it is to be
	Failed  State = "failed"  // something is in the way, and Cause says what
)

// Report is why a claim is as it is.
type Report struct {
	metav1.TypeMeta `json:",inline"`

	Claim   string       `json:"claim,omitempty"` // namespace/name
	UID     string       `json:"uid"`
	Class   string       `json:"class,omitempty"`
	Size    string       `json:"size,omitempty"`
	Phase   string       `json:"phase,omitempty"`
	Created *metav1.Time `json:"created,omitempty"`
	// Config is the ConfigMap, "namespace/name", that serves the class, and Revision the config
	// revision under which the claim would be, or was, provisioned.
	Config   string `json:"config,omitempty"`
	Revision string `json:"revision,omitempty"`
	Volume   string `json:"volume,omitempty"` // the PersistentVolume
	// Runs are the Jobs for the claim that still exist, the oldest first.
	Runs []Run `json:"runs,omitempty"`

	State State `json:"state"`
	// ClaimState is what is to become of the claim's volume, as the dispatcher decides. It is empty for
	// a user who may not read what it is decided by.
	ClaimState string `json:"claimState,omitempty"`
	// Reason is that of the event about Cause, empty if there is none. Remedy ends the cause, empty
	// if only time does, and Next is what the dispatcher does next, at NextAt if that is known.
	Reason string       `json:"reason,omitempty"`
	Cause  string       `json:"cause,omitempty"`
	Remedy string       `json:"remedy,omitempty"`
	Next   string       `json:"next,omitempty"`
	NextAt *metav1.Time `json:"nextAt,omitempty"`
	// NotRead are the objects that the user may not read.
	NotRead []string `json:"notRead,omitempty"`
	// Warnings are what does not keep the claim from its volume, and should be corrected.
	Warnings []string `json:"warnings,omitempty"`

	// failed is the verdict of the run that Cause is about, empty if it is about none. made is the UID
	// of the claim for which the volume was made, empty if it was made for this one.
	failed, made string
}

// Run is one Job.
type Run struct {
	Job     string       `json:"job"` // namespace/name
	Verb    string       `json:"verb"`
	Attempt int          `json:"attempt"`
	Claims  int          `json:"claims"` // that share the Job
	State   string       `json:"state"`  // how far it is
	Node    string       `json:"node,omitempty"`
	Created metav1.Time  `json:"created"`
	Ended   *metav1.Time `json:"ended,omitempty"`
	// Verdict and Outcome are how it ended, Message is what its container said.
	Verdict string `json:"verdict,omitempty"`
	Outcome string `json:"outcome,omitempty"`
	Message string `json:"message,omitempty"`
}

// newReport returns a report about a UID.
func newReport(uid string) *Report {
	return &Report{TypeMeta: metav1.TypeMeta{APIVersion: Version, Kind: "ClaimReport"}, UID: uid}
}

// found returns ErrFound if anything is wrong.
func (r *Report) found() error {
	if r.State == Failed {
		return ErrFound
	}
	return nil
}

// timeOf returns a time that may be zero, for a report.
func timeOf(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return &metav1.Time{Time: t.UTC()}
}
