package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/decide"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// member is a UID that is launched together with another.
type member struct {
	o    *observation
	a    decide.Launch
	plan jobs.Plan
}

// groupOf names those with whom a UID can share a Job: of these all is the same that a Job has only once.
// Empty: it goes alone.
func groupOf(o *observation, verb contract.Verb, shares bool) string {
	cfg := o.configFor(verb)
	if !shares || cfg.BatchSize < 2 {
		return ""
	}
	class, node := cfg.Source.Class, ""
	if verb != contract.Provision {
		class = o.pv.Spec.StorageClassName // an administrator may have moved the PV to this revision
	}
	switch {
	case cfg.RunOn != config.RunOnSelected:
	case verb == contract.Provision:
		node = o.serve.target.Node
	default:
		node = affinityOf(o.pv)
	}
	return strings.Join([]string{string(verb), cfg.Source.Revision(), class, node}, "\n")
}

func affinityOf(pv *corev1.PersistentVolume) string {
	b, err := json.Marshal(pv.Spec.NodeAffinity)
	if err != nil {
		return string(pv.UID) // of a kind of its own
	}
	return string(b)
}

// launchTogether creates a Job for a UID and for those who wait for the same. It returns nil where nobody
// does, or where the API server refuses the Job of all: perhaps for one request's sake, and a bad neighbour
// must not keep this one from being launched.
func (c *Controller) launchTogether(ctx context.Context, o *observation, a decide.Launch, plan jobs.Plan) (*batchv1.Job, error) {
	company := c.companions(ctx, o, a)
	alone := plan
	plan, err := jobs.TrimToSize(together(alone, company))
	if err != nil {
		c.dismiss(company)
		return nil, err
	}
	c.dismiss(company[len(plan.With):])
	company = company[:len(plan.With)]
	if company, err = c.unchanged(ctx, o, a, company); err != nil {
		return nil, err
	}
	plan = together(alone, company)
	if len(company) == 0 {
		return nil, nil //nolint:nilnil // nil: it goes alone
	}
	job, err := c.create(ctx, o, plan)
	if err != nil {
		c.dismiss(company)
		if refused(err) {
			return nil, nil //nolint:nilnil // as above
		}
		return nil, err
	}
	for _, m := range company {
		c.turns.dismiss(m.o.uid) // the Job wakes it
		c.tellLaunched(ctx, m.o, job, m.a)
	}
	return job, nil
}

// companions are those who wait for the same and go along. A class with a free slot has nobody waiting, so
// that nobody waits for company either.
func (c *Controller) companions(ctx context.Context, o *observation, a decide.Launch) []member {
	group := groupOf(o, a.Verb, a.MayBatch)
	if group == "" {
		return nil
	}
	cfg := o.configFor(a.Verb)
	var out []member
	for _, uid := range c.take(counterOf(cfg.Source), group, cfg.BatchSize-1) {
		m, ready, err := c.ready(ctx, uid, group, a.AnyNode)
		if err != nil {
			klog.FromContext(ctx).Error(err, "cannot launch a claim together with another", "uid", uid)
		}
		if !ready {
			c.turns.dismiss(uid)
			c.queue.Add(uid)
			continue
		}
		out = append(out, m)
	}
	return out
}

// unchanged are those whose volumes are as they were looked at. To gather a batch of deletes takes a while, in which
// an administrator may have rescued one, and nothing on it would have told that it was about to go.
func (c *Controller) unchanged(ctx context.Context, o *observation, a decide.Launch, company []member) ([]member, error) {
	if a.Verb != contract.Delete || len(company) == 0 {
		return company, nil
	}
	if same, err := c.same(ctx, o.pv); err != nil || !same {
		c.dismiss(company)
		return nil, cmp.Or(err, errors.New("the PersistentVolume has changed while others were asked to go along"))
	}
	var out []member
	for _, m := range company {
		if same, err := c.same(ctx, m.o.pv); err != nil || !same {
			c.dismiss([]member{m})
			continue
		}
		out = append(out, m)
	}
	return out, nil
}

// same tells whether a PV is as it was looked at.
func (c *Controller) same(ctx context.Context, pv *corev1.PersistentVolume) (bool, error) {
	now, err := live{client: c.client}.volume(ctx, pv.Name)
	return now != nil && now.UID == pv.UID && now.ResourceVersion == pv.ResourceVersion, err
}

// take takes those of a group whose turn would be next out of their line. Until they are dismissed they get
// no turn of their own: a UID has one Job at a time.
func (c *Controller) take(at counter, group string, most int) []types.UID {
	c.turns.mu.Lock()
	defer c.turns.mu.Unlock()
	line := c.turns.lines[at]
	if line == nil {
		return nil
	}
	var out []types.UID
	for _, w := range line.Take(group, c.load(at), most) {
		c.turns.taken[types.UID(w.UID)] = true
		out = append(out, types.UID(w.UID))
	}
	return out
}

// dismiss lets those who were taken and get no Job stand in line again.
func (c *Controller) dismiss(company []member) {
	for _, m := range company {
		c.turns.dismiss(m.o.uid)
		c.queue.Add(m.o.uid)
	}
}

func (t *turns) dismiss(uid types.UID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.taken, uid)
}

// ready decides for a UID that was taken, on live facts and as if it had a slot of its own. It goes along
// only if a launch comes out, of the same group. An expand is first said on its claim.
func (c *Controller) ready(ctx context.Context, uid types.UID, group string, anywhere bool) (m member, ready bool, err error) {
	for range 2 {
		if m.o, err = c.observe(ctx, c.caches, uid); err != nil {
			return m, false, err
		}
		if m.o, err = c.observe(ctx, c.live(m.o), uid); err != nil {
			return m, false, err
		}
		v := m.o.view
		v.Provision.HasSlot, v.Delete.HasSlot, v.Expand.HasSlot = true, true, true
		action := decide.Decide(v)
		if a, launches := action.(decide.Launch); launches && a.AnyNode == anywhere && groupOf(m.o, a.Verb, a.MayBatch) == group {
			m.a = a
			m.plan, err = c.plan(ctx, m.o, a)
			return m, err == nil, err
		}
		if _, begins := action.(decide.Begin); !begins {
			break
		}
		if err = c.begin(ctx, m.o); err != nil {
			break
		}
	}
	return m, false, err
}

// together is the plan of a Job for all. Its number is free for each of them.
func together(plan jobs.Plan, company []member) jobs.Plan {
	for _, m := range company {
		plan.With = append(plan.With, m.plan)
		plan.Number = max(plan.Number, m.plan.Number)
	}
	return plan
}

// crowded is how soon a UID is looked at again that could not write on a Job, because another had.
const crowded = 100 * time.Millisecond

// lookAgain at a UID whose write met a conflict. Of a Job's changes only those of its own wake a UID, where
// it serves several.
func (c *Controller) lookAgain(o *observation, run decide.Run) {
	if len(run.UIDs) > 1 {
		c.queue.AddAfter(o.uid, crowded)
	}
}

// orLookAgain: among several claims of one Job a conflict is no error.
func (c *Controller) orLookAgain(err error, o *observation, run decide.Run) error {
	if apierrors.IsConflict(err) && len(run.UIDs) > 1 {
		c.lookAgain(o, run)
		return nil
	}
	return err
}

// jobUpdated: of a Job that serves several claims most changes are a note about one of them. The others
// need not look at each, or the work would grow with their square.
func (c *Controller) jobUpdated(old, now *batchv1.Job) {
	noted, only := notes(old, now)
	if !only {
		c.jobChanged(old) // an index that it has left wants to know as well
		c.jobChanged(now)
		return
	}
	for _, uid := range noted {
		c.queue.Add(types.UID(uid))
	}
}

// notes are the claims of a Job about which something was written on it, and whether nothing else was.
func notes(old, now *batchv1.Job) (uids []string, only bool) {
	members := jobs.UIDs(now)
	if len(members) < 2 || !equality.Semantic.DeepEqual(old.Spec, now.Spec) || !equality.Semantic.DeepEqual(old.Status, now.Status) ||
		!slices.Equal(old.Finalizers, now.Finalizers) || !old.DeletionTimestamp.Equal(now.DeletionTimestamp) {
		return nil, false
	}
	for key, value := range now.Annotations {
		if old.Annotations[key] == value {
			continue
		}
		uid, _, _ := strings.Cut(key, ".")
		if !slices.Contains(members, uid) {
			return nil, false
		}
		uids = append(uids, uid)
	}
	return uids, true
}
