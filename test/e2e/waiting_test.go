//go:build e2e && long

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Thousands of claims of a class without a config say why they wait, and end no leader: neither the
// one that sees them come, nor the next one, which looks at all of them for the first time. A claim
// of another class is served meanwhile. No other test runs, since the leader's lease is that of
// all.
func TestThousandsOfWaitingClaimsEndNoLeader(t *testing.T) {
	w := newWorld(t, "waiting")
	const many = 2500
	w.class(w.ns)
	served := newWorld(t, "beside")
	class, _ := served.service(scripted(deletes+offer, nil))
	user := serviceAccount(systemNamespace, dispatcher)

	from := time.Now()
	first, transitions := w.lease()
	restarts, err := containerRestarts(w.ctx())
	w.must(err, "look at the replicas")
	claims := w.crowd(w.ns, ownNamespace, many)
	t.Logf("%d claims created in %.1f s", many, time.Since(from).Seconds())
	w.always(15*time.Second, "the leader must lead on", func(ctx context.Context) error { return stillLeads(ctx, first, restarts) })
	served.bound(served.claim(class, "under-the-first"))
	_, now := w.lease()
	equal(t, "the lease's transitions under its first leader", now, transitions)

	leader, err := leader(w.ctx())
	w.must(err, "find the leader")
	w.deleteReplica(leader)
	var second string
	w.eventually(30*time.Second, "another replica to lead", func(ctx context.Context) error {
		holder, err := holderOf(ctx)
		if err == nil && (holder == first || holder == "") {
			err = fmt.Errorf("%q does", holder)
		}
		second = holder
		return err
	})
	w.always(25*time.Second, "the next leader must lead on", func(ctx context.Context) error { return stillLeads(ctx, second, restarts) })
	served.bound(served.claim(class, "under-the-next"))
	_, now = w.lease()
	equal(t, "the lease's transitions under the next leader", now-transitions <= 2, true) // one to release it, one to take it

	longest, renewals := w.longestPause(user, from)
	said, err := countRequests(user, from, time.Now())
	w.must(err, "read the audit log")
	events := said[requestKind{user, "create", "events", 201}] + said[requestKind{user, "patch", "events", 200}]
	t.Logf("%d transitions, %d renewals, the longest pause between two %.1f s, %d events", now-transitions, renewals, longest.Seconds(), events)
	if longest > 10*time.Second {
		t.Errorf("between two renewals of the lease %s passed", longest)
	}
	if events < many/2 {
		t.Errorf("only %d events were written", events)
	}
	claims.deleteAll()
	w.eventually(4*time.Minute, "the claims to go", claims.gone)
	w.eventually(toBind, "both dispatchers to be ready", dispatchersReady)
	t.Logf("all in %.1f s", time.Since(from).Seconds())
}

// lease returns who holds the dispatchers' lease, and how often it has changed hands.
func (w *world) lease() (holder string, transitions int32) {
	w.t.Helper()
	lease, err := kube.CoordinationV1().Leases(systemNamespace).Get(w.ctx(), dispatcher, metav1.GetOptions{})
	w.must(err, "look at the lease")
	if lease.Spec.HolderIdentity != nil {
		holder = *lease.Spec.HolderIdentity
	}
	if lease.Spec.LeaseTransitions != nil {
		transitions = *lease.Spec.LeaseTransitions
	}
	return holder, transitions
}

func holderOf(ctx context.Context) (string, error) {
	lease, err := kube.CoordinationV1().Leases(systemNamespace).Get(ctx, dispatcher, metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return "", err
	}
	return *lease.Spec.HolderIdentity, nil
}

// stillLeads reports an error unless a leader holds the lease, and no dispatcher's container was
// started again.
func stillLeads(ctx context.Context, leader string, restarts int32) error {
	holder, err := holderOf(ctx)
	if err == nil && holder != leader {
		err = fmt.Errorf("%q leads, not %q", holder, leader)
	}
	if err != nil {
		return err
	}
	now, err := containerRestarts(ctx)
	if err == nil && now > restarts {
		err = fmt.Errorf("the dispatchers were started again %d times, and %d times before", now, restarts)
	}
	return err
}

// containerRestarts returns how often the containers of the replicas were started again. It falls
// when a replica is replaced.
func containerRestarts(ctx context.Context) (count int32, err error) {
	pods, err := replicas(ctx)
	for _, pod := range pods {
		for _, s := range pod.Status.ContainerStatuses {
			count += s.RestartCount
		}
	}
	return count, err
}

// longestPause returns the longest time between two renewals of the lease, and how many there were.
func (w *world) longestPause(user string, from time.Time) (longest time.Duration, renewals int) {
	w.t.Helper()
	requests, err := requestsOf(user, from, time.Now())
	w.must(err, "read the audit log")
	last := from
	for _, r := range requests {
		if r.Object.Resource == "leases" && r.Verb == "update" && r.Answer.Code == 200 {
			longest, last = max(longest, r.At.Sub(last)), r.At
			renewals++
		}
	}
	return longest, renewals
}
