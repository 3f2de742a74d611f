package controller_test

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// past is a replay of all that was written, for laws that hold whatever a test is about.
type past struct {
	w     *world
	jobs  map[string][]place // of a claim, by its UID
	now   map[place]object
	pods  map[place][]place // of a Job
	claim map[string]place  // by UID
}

// mustKeepTheLaws replays what was written and checks at every step what the dispatcher must never do.
func (w *world) mustKeepTheLaws() {
	w.t.Helper()
	p := &past{w: w, jobs: map[string][]place{}, now: map[place]object{}, pods: map[place][]place{}, claim: map[string]place{}}
	for _, c := range w.server.history() {
		if job, ok := c.now.(*batchv1.Job); ok && c.verb == "create" && c.by == "dispatcher" {
			p.mustBeAlone(job)
			p.mustBeWanted(job)
		}
		if c.by == "dispatcher" && c.now != nil && c.resource == "persistentvolumeclaims" {
			p.mustNotBeHeld(c.now)
		}
		p.follow(c)
	}
}

func (p *past) follow(c change) {
	p.now[c.place] = c.now
	switch obj := c.now.(type) {
	case *batchv1.Job:
		if c.verb == "create" {
			for _, uid := range uidsOf(obj) {
				p.jobs[uid] = append(p.jobs[uid], c.place)
			}
		}
	case *corev1.Pod:
		if c.verb == "create" {
			at := place{"jobs", c.namespace, obj.Labels[batchv1.JobNameLabel]}
			p.pods[at] = append(p.pods[at], c.place)
		}
	case *corev1.PersistentVolumeClaim:
		p.claim[string(obj.UID)] = c.place
	}
}

func uidsOf(job *batchv1.Job) []string { return strings.Split(job.Annotations[jobs.AnnUIDs], ",") }

// mustBeAlone is rule 2: at most one unfinished Job of a UID, whatever the verb.
func (p *past) mustBeAlone(job *batchv1.Job) {
	for _, uid := range uidsOf(job) {
		for _, at := range p.jobs[uid] {
			if p.unfinished(at) {
				p.w.t.Errorf("%s is made while %s is unfinished", job.Name, at.name)
			}
		}
	}
}

// unfinished by rule 5: neither Complete nor Failed, nor deleted with no pod that may still run.
func (p *past) unfinished(at place) bool {
	job, exists := p.now[at].(*batchv1.Job)
	if !exists || ended(job) != nil {
		return false
	}
	if job.DeletionTimestamp == nil {
		return true
	}
	for _, at := range p.pods[at] {
		if pod, exists := p.now[at].(*corev1.Pod); exists && !over(pod) {
			return true
		}
	}
	return false
}

// mustBeWanted is rule 7's end: no Job starts for a claim with a deletionTimestamp, nor for one that has gone.
func (p *past) mustBeWanted(job *batchv1.Job) {
	if verb := job.Labels[jobs.LabelVerb]; verb != string(contract.Provision) {
		return
	}
	for _, uid := range uidsOf(job) {
		claim, exists := p.now[p.claim[uid]].(*corev1.PersistentVolumeClaim)
		if !exists || string(claim.UID) != uid || claim.DeletionTimestamp != nil {
			p.w.t.Errorf("%s is made for a claim that is leaving or has gone", job.Name)
		}
	}
}

// mustNotBeHeld is rule 7, too: a claim's own deletion is never blocked.
func (p *past) mustNotBeHeld(claim object) {
	for _, f := range claim.GetFinalizers() {
		if strings.HasPrefix(f, contract.Domain) {
			p.w.t.Errorf("the claim %s carries the finalizer %s", claim.GetName(), f)
		}
	}
}
