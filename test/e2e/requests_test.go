//go:build e2e && long

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	storagev1 "k8s.io/api/storage/v1"
)

// What the dispatcher may ask of the API server for one claim: so many writes, an event or, in a
// batch, next to none, no reads, and no answer 409. The writes of a provision are the Job, the note
// of its confirmed pod, the pod's gate, the outcome, the pod's finalizer, and the result on the
// claim. Those of a deletion end with the PV twice, its deletion and its finalizer. The claims of a
// batch share the five writes of its Job, of which 128 claims have three (firstBatch), and one of them shows its result.
const (
	mostWritesProvision            = 6
	mostWritesProvisionRetain      = 7
	mostWritesProvisionBatch       = 0.13
	mostWritesProvisionBatchRetain = 1.13
	mostWritesDelete               = 7
	mostWritesDeleteBatch          = 2.12
	mostEvents, mostEventsBatch    = 1, 0.1
	mostReads, mostConflicts       = 0, 0
)

// load is a class, and what its claims are to cost.
type load struct {
	name              string
	claims, batch     int
	retain            bool
	provision, remove float64 // writes for each claim; remove is not measured where the PVs are retained
}

var loads = []load{
	{name: "single", claims: 8, batch: 1, provision: mostWritesProvision, remove: mostWritesDelete},
	{name: "single-retain", claims: 8, batch: 1, retain: true, provision: mostWritesProvisionRetain},
	{name: "batch", claims: 128, batch: 64, provision: mostWritesProvisionBatch, remove: mostWritesDeleteBatch},
	{name: "batch-retain", claims: 128, batch: 64, retain: true, provision: mostWritesProvisionBatchRetain},
}

// quietly is how long a dispatcher asks for nothing when all is done.
const quietly = 3 * time.Second

// The dispatcher's requests are counted from the API server's audit log, events and leases apart.
// It is one of the test's own, with a user of its own and the permissions that are shipped. No
// other test runs, so that no deadline of it passes for want of a processor.
func TestRequestsPerClaim(t *testing.T) {
	w := newWorld(t, "requests")
	w.started("--kubeconfig=" + w.shippedAccount())
	w.leads("")
	writer := w.pvWriter()
	for _, l := range loads {
		w.loadClass(l, writer)
		w.claim(w.ns+"-"+l.name, "first-"+l.name) // stores the config's revision
	}
	w.allClaims(toBind, "to be bound", succeeded)
	for i, l := range loads {
		if l.retain {
			w.retained(w.claims[i])
		}
	}
	w.quiet()

	table := &requestTable{}
	defer func() { t.Logf("requests of the dispatcher for each claim:\n%s", table) }()
	for _, l := range loads {
		from := time.Now()
		claims := w.crowd(w.ns+"-"+l.name, w.ns, l.claims)
		w.eventually(4*time.Minute, "all claims to be bound", claims.bound)
		w.eventually(2*time.Minute, "all records to be released", claims.released)
		w.quiet()
		table.add(w, l, "provision", l.provision, from)
		if l.retain {
			continue
		}
		from = time.Now()
		claims.deleteAll()
		w.eventually(4*time.Minute, "all claims and volumes to go", claims.gone)
		w.quiet()
		table.add(w, l, "delete", l.remove, from)
	}
}

// firstBatch is how long a Job of fewer than half of a batch's claims takes. Meanwhile all others
// come to wait for its slot, so that the next Jobs are full, however slowly they come.
const firstBatch = `[ "$(grep -o '"uid"' /etc/flex/request.json | wc -l)" -ge 32 ] || sleep 12
`

// loadClass makes a class of the test's own dispatcher.
func (w *world) loadClass(l load, account string) {
	w.t.Helper()
	more := map[string]string{
		// Of twenty containers at a time on a slow machine each takes longer than half a minute,
		// and is reported then, which is another event.
		"write-pv": "container", "service-account-name": account, "max-parallel": "4", "batch-size": fmt.Sprint(l.batch),
	}
	script := "[ $FLEX_VERB != delete ] || exit 0\n"
	if l.batch > 1 {
		more["max-parallel"] = "1"
		script = firstBatch + script
	}
	w.class(w.ns+"-"+l.name, w.oursAlone, func(class *storagev1.StorageClass) {
		if l.retain {
			retain(class)
		}
	})
	w.config(w.ns, w.ns+"-"+l.name, scripted(script+`kubectl patch --local -f /etc/flex/pv.json --type=merge -o 'jsonpath={.metadata.name} {@}{"\n"}' -p '{"spec":{"nfs":{"server":"10.250.0.9","path":"/x"}}}' |
  while read -r name pv; do printf '%s\n' "${pv/'"/x"'/'"/'$name'"'}"; done |
  kubectl create -f - >/dev/null || kubectl get -f /etc/flex/pv.json >/dev/null
`, more))
}

// quiet waits until the test's own dispatcher has asked for nothing for a while.
func (w *world) quiet() {
	w.t.Helper()
	w.eventually(toBind, "the dispatcher to ask for nothing", func(context.Context) error {
		recent, err := requestsOf(serviceAccount(w.ns, dispatcher), time.Now().Add(-quietly), time.Now())
		if recent = slices.DeleteFunc(recent, audited.isApart); err == nil && len(recent) > 0 {
			err = errors.New("it asks: " + recent[len(recent)-1].Verb + " " + recent[len(recent)-1].resource())
		}
		return err
	})
}

// isApart reports whether a request is not counted: events, leases, and watches, which last.
func (a audited) isApart() bool {
	return a.Object.Resource == "events" || a.Object.Resource == "leases" || a.Verb == "watch"
}

// requestTable is what is printed.
type requestTable struct{ rows, details []string }

// add counts what was asked since a time, and compares it with what it may be.
func (table *requestTable) add(w *world, l load, verb string, most float64, from time.Time) {
	w.t.Helper()
	asked, err := requestsOf(serviceAccount(w.ns, dispatcher), from, time.Now())
	w.must(err, "read the audit log")
	kinds := map[string]int{}
	var writes, reads, conflicts, events float64
	for _, r := range asked {
		switch {
		case r.Object.Resource == "events" && r.Verb != "list": // of a pod that starts slowly, the events are read
			events++
		case r.isApart():
			continue
		case r.Verb == "get" || r.Verb == "list" || r.Object.Resource == "selfsubjectaccessreviews":
			reads++
		default:
			writes++
		}
		if !r.isApart() && r.Answer.Code == http.StatusConflict {
			conflicts++
		}
		kinds[fmt.Sprintf("%s %s %d", r.Verb, r.resource(), r.Answer.Code)]++
	}
	each := float64(l.claims)
	what := fmt.Sprintf("%s, batch %d, retain %v", verb, l.batch, l.retain)
	table.rows = append(table.rows, fmt.Sprintf("%s\t%d\t%.3f\t%.2f\t%.3f\t%.0f\t%.3f", what, l.claims, writes/each, most, reads/each, conflicts, events/each))
	table.details = append(table.details, what+":")
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		table.details = append(table.details, fmt.Sprintf("  %6d  %s", kinds[kind], kind))
	}
	if writes/each > most {
		w.t.Errorf("%s: %.3f writes for each claim, not %.2f or less", what, writes/each, most)
	}
	allowedEvents := float64(mostEvents)
	if l.batch > 1 {
		allowedEvents = mostEventsBatch
	}
	if events/each > allowedEvents {
		w.t.Errorf("%s: %.3f events for each claim, not %.1f or less", what, events/each, allowedEvents)
	}
	if reads > mostReads {
		w.t.Errorf("%s: %.0f reads, not %d", what, reads, mostReads)
	}
	if conflicts > mostConflicts {
		w.t.Errorf("%s: %.0f answers 409, not %d", what, conflicts, mostConflicts)
	}
	if n := w.disturbed(from); n > mostConflicts {
		w.t.Errorf("%s: %d answers 409 to the PV controller about claims, not %d: the dispatcher wrote on them while it bound them", what, n, mostConflicts)
	}
}

// disturbed returns how many writes of the PV controller on claims met another's since a time.
func (w *world) disturbed(from time.Time) int {
	w.t.Helper()
	asked, err := requestsOf(serviceAccount("kube-system", "persistent-volume-binder"), from, time.Now())
	w.must(err, "read the audit log")
	n := 0
	for _, r := range asked {
		if r.Object.Resource == "persistentvolumeclaims" && r.Answer.Code == http.StatusConflict {
			n++
		}
	}
	return n
}

// String aligns the columns.
func (table *requestTable) String() string {
	var out strings.Builder
	columns := tabwriter.NewWriter(&out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(columns, "what\tclaims\twrites\tat most\treads\tanswers 409\tevents\t")
	for _, row := range table.rows {
		fmt.Fprintln(columns, row+"\t")
	}
	_ = columns.Flush() // a strings.Builder
	return out.String() + strings.Join(table.details, "\n")
}
