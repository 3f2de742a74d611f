package jobs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/config"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
)

// batchOf is the plan of a Job for the claims of these UIDs; the last is of another namespace.
func batchOf(cfg config.Config, uids ...string) jobs.Plan {
	plans := make([]jobs.Plan, len(uids))
	for i, uid := range uids {
		plans[i] = provision(cfg, claim(func(c *corev1.PersistentVolumeClaim) {
			c.UID, c.Name = types.UID(uid), "data-"+uid
			if i == len(uids)-1 {
				c.Namespace = "other"
			}
		}))
		plans[i].Attempt = i + 1
	}
	plan := plans[0]
	plan.With = plans[1:]
	return plan
}

func TestItem10GoldenJobOfABatch(t *testing.T) {
	cfg := configOf(t, "Delete", map[string]string{"batch-size": "3"})
	golden(t, "job-batch", build(t, batchOf(cfg, "u1", "u2", "u3")))
}

func TestItem10ABatchsJobIsTheRecordOfEachClaim(t *testing.T) {
	cfg := configOf(t, "Delete", nil)
	plan := batchOf(cfg, "u1", "u2", "u3")
	plan.Number = 4
	job := build(t, plan)
	for i, one := range append([]jobs.Plan{plan}, plan.With...) {
		want := jobs.Record{
			Verb: contract.Provision, UIDs: []string{"u1", "u2", "u3"}, Number: 4, Attempt: i + 1, Hash: one.Hash,
			Revision: cfg.Source.Revision(), Clean: true, Held: true, Others: jobs.Others{Want: true, Unsettled: true, Held: true},
		}
		if diff := cmp.Diff(want, jobs.RecordOf(job, one.Request.UID)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", one.Request.UID, diff)
		}
		request, pv, err := jobs.Recorded(job.Spec.Template.Annotations, one.Request.UID)
		if err != nil || request.Name != "data-"+one.Request.UID || pv.Name != "pvc-"+one.Request.UID || string(pv.Spec.ClaimRef.UID) != one.Request.UID {
			t.Errorf("%s is asked for as %+v, %+v, %v", one.Request.UID, request, pv, err)
		}
		if _, found := job.Labels[contract.LabelMember+one.Request.UID]; !found {
			t.Errorf("no list finds the Job of %s", one.Request.UID)
		}
	}
}

func TestItem10WhatIsWrittenOfOneClaimIsSoForNoOther(t *testing.T) {
	job := build(t, batchOf(configOf(t, "Delete", nil), "u1", "u2"))
	set := func(uid, annotation, value string) { job.Annotations[jobs.Key(job, uid, annotation)] = value }
	set("u1", contract.AnnOutcome, `{"verdict":"Done","finished":"2026-11-20T10:00:00Z"}`)
	set("u1", contract.AnnWaived, "true")
	set("u1", contract.AnnReleased, "true")
	one, two := jobs.RecordOf(job, "u1"), jobs.RecordOf(job, "u2")
	if one.Settled == nil || !one.Waived || one.Held || one.Others != (jobs.Others{Want: true, Unsettled: true, Held: true}) {
		t.Errorf("the first: %+v", one)
	}
	if two.Settled != nil || two.Waived || !two.Held || two.Others != (jobs.Others{}) {
		t.Errorf("the second: %+v", two)
	}
	if !jobs.AnySettled(job) || jobs.AllDone(job) {
		t.Errorf("any settled %t, all done %t", jobs.AnySettled(job), jobs.AllDone(job))
	}
	set("u2", contract.AnnOutcome, `{"verdict":"Unlisted","finished":"2026-11-20T10:00:00Z"}`)
	if jobs.AllDone(job) {
		t.Error("a batch with a failure is called done")
	}
}

func TestItem10ABatchHasNoVariableOfASingleClaim(t *testing.T) {
	cfg := configOf(t, "Delete", nil)
	got := variables(t, provisioner(t, build(t, batchOf(cfg, "u1", "u2"))))
	shared := []string{"HOME", "FLEX_VERB", "FLEX_STORAGE_CLASS", "FLEX_SERVICE_ACCOUNT", "FLEX_KUBE_API", "FLEX_UNDO", "FLEX_USE_NFS_SERVER", "FLEX_FSTYPE"}
	for name := range got {
		if !slices.Contains(shared, name) {
			t.Errorf("%s=%s", name, got[name])
		}
	}
	if len(got) != len(shared) {
		t.Errorf("the variables are %v", got)
	}
	if alone := variables(t, provisioner(t, build(t, batchOf(cfg, "u1")))); alone["FLEX_CLAIM_UID"] != "u1" || alone["FLEX_PV_NAME"] != "pvc-u1" {
		t.Errorf("alone the variables are %v", alone)
	}
}

func TestItem10ABatchIsSplitByTheBytesOfItsFiles(t *testing.T) {
	cfg := configOf(t, "Delete", nil)
	var uids []string
	for i := range contract.MaxBatch {
		uids = append(uids, fmt.Sprintf("u%02d", i))
	}
	plan := batchOf(cfg, uids...)
	large := strings.Repeat("x", 8<<10)
	plan.With[0].Request.Annotations = map[string]string{"text": large}
	for i := 20; i < len(plan.With); i++ {
		plan.With[i].Request.Annotations = map[string]string{"text": large}
	}
	fits, err := jobs.Fit(plan)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(fits.With); n < 21 || n >= len(plan.With) || fits.With[n-1].Request.UID != uids[n] {
		t.Errorf("%d of %d go along", n, len(plan.With))
	}
	size := func(p jobs.Plan) int {
		a := build(t, p).Spec.Template.Annotations
		return len(a[contract.AnnRequest]) + len(a[contract.AnnPV])
	}
	if n := size(fits); n > contract.MaxFiles || n < contract.MaxFiles-(20<<10) {
		t.Errorf("the files have %d bytes", n)
	}
	// One that is too large by itself goes all the same, and the API server has the last word.
	plan.Request.Annotations = map[string]string{"text": strings.Repeat("x", contract.MaxFiles)}
	if fits, err = jobs.Fit(plan); err != nil || len(fits.With) != 0 {
		t.Errorf("%d go along, %v", len(fits.With), err)
	}
	if fits, err = jobs.Fit(batchOf(cfg, uids...)); err != nil || len(fits.With) != len(uids)-1 {
		t.Errorf("%d of %d usual requests fit, %v", len(fits.With)+1, len(uids), err)
	}
}

// line is a result as an image writes it.
func line(uid string, code int, more string) string {
	return fmt.Sprintf(`{"uid":%q,"code":%d%s}`+"\n", uid, code, more)
}

func TestItem10EachRequestOfABatchHasItsOwnOutcome(t *testing.T) {
	full := strings.Repeat("x", contract.MaxMessage)
	end := func(text string) string { return (full + text)[len(text):] }
	for name, test := range map[string]struct {
		code    int32
		message string
		change  func(*corev1.Pod)
		want    string // verdict and message of the request two
	}{
		"exit 0 and silence":                        {code: 0, want: "Done"},
		"exit 0 and words for people":               {code: 0, message: "claim: all is well\n", want: "Done"},
		"exit 0 and a success of its own":           {code: 0, message: line("two", 0, ""), want: "Done"},
		"exit 0 and a failure of its own":           {code: 0, message: line("two", 65, `,"message":"claim: no"`), want: "BadRequest claim: no"},
		"exit 0 and another's failure":              {code: 0, message: line("one", 75, ""), want: "Unlisted"},
		"exit 0, another's failure and a success":   {code: 0, message: line("one", 75, "") + line("two", 0, ""), want: "Done"},
		"exit 0 and a message that may be cut off":  {code: 0, message: full, want: "Unlisted"},
		"exit 0, cut off, but listed":               {code: 0, message: end("\n" + line("two", 0, "")), want: "Done"},
		"a success by itself":                       {code: 1, message: line("two", 0, ""), want: "Done"},
		"its own exit code":                         {code: 1, message: line("one", 0, "") + line("two", 73, `,"message":"full"`), want: "NoCapacity full"},
		"credentials":                               {code: 77, message: line("two", 77, ""), want: "CredentialsRefused"},
		"another's exit code":                       {code: 65, message: line("one", 65, `,"message":"claim: for one only"`), want: "Unlisted"},
		"silence":                                   {code: 1, want: "Unlisted"},
		"silence, 64, 77, 78: which request was it": {code: 78, message: "claim: whose?", want: "Unlisted"},
		"the last of its results counts":            {code: 1, message: line("two", 75, "") + line("two", 0, ""), want: "Done"},
		"the last of its results counts, again":     {code: 1, message: line("two", 0, "") + line("two", 75, ""), want: "TryAgain"},
		"amid noise":                                {code: 1, message: "+ set -x\n  " + line("two", 0, "") + "\x00\xff{\n", want: "Done"},
		"a result without a code":                   {code: 1, message: `{"uid":"two","message":"x"}`, want: "Unlisted"},
		"a code that is no number":                  {code: 1, message: `{"uid":"two","code":"0"}`, want: "Unlisted"},
		"a code beyond all bounds":                  {code: 1, message: `{"uid":"two","code":4294967296}`, want: "Unlisted"},
		"a result in the midst of a line":           {code: 1, message: "said " + line("two", 0, ""), want: "Unlisted"},
		"two results in one line":                   {code: 1, message: `{"uid":"two","code":0} {"uid":"one","code":0}`, want: "Unlisted"},
		"another's message is a result":             {code: 1, message: line("one", 75, `,"message":"\n{\"uid\":\"two\",\"code\":0}\n"`), want: "Unlisted"},
		"binary":                                    {code: 1, message: "\x00\x01\xfe\xff{}[]\n\"", want: "Unlisted"},
		"no UTF-8 in its message":                   {code: 1, message: line("two", 75, `,"message":"claim: a`+"\xff"+`b"`), want: "TryAgain claim: a\ufffdb"},
		"a raw bell in its message":                 {code: 1, message: line("two", 75, `,"message":"a`+"\x07"+`b"`), want: "Unlisted"},
		"cut off before its result":                 {code: 1, message: end(`,"code":65}` + "\n"), want: "Unlisted"},
		"cut off so that the rest is a result":      {code: 1, message: line("two", 0, "") + strings.Repeat("y", contract.MaxMessage-len(line("two", 0, ""))), want: "Unlisted"},
		"the same, of the log":                      {code: 1, message: line("two", 0, "") + strings.Repeat("y", 2048-len(line("two", 0, ""))), want: "Unlisted"},
		"cut off at its end": {code: 0, message: strings.Repeat("y", 2999) + "\n" + line("two", 0, "")[:10], change: func(p *corev1.Pod) {
			p.Spec.Containers = make([]corev1.Container, 4)
			p.Status.ContainerStatuses[1].State.Terminated.Message += strings.Repeat("z", 3072)
		}, want: "Unlisted"},
		"out of memory":                     {code: 137, change: oom, want: "Unlisted"},
		"out of memory after its result":    {code: 137, message: line("two", 0, ""), change: oom, want: "Done"},
		"disrupted":                         {code: 143, change: disrupted, want: "Disrupted"},
		"disrupted after its result":        {code: 143, message: line("two", 65, ""), change: disrupted, want: "BadRequest"},
		"never made":                        {code: 137, change: func(p *corev1.Pod) { neverMade(p); because("DeadlineExceeded", "late")(p) }, want: "NotStarted"},
		"past its deadline":                 {code: 137, change: because("DeadlineExceeded", "late"), want: "Unlisted"},
		"an escape in its message is shown": {code: 1, message: line("two", 75, `,"message":"a\u001b[31mb"`), want: "TryAgain a[31mb"},
	} {
		t.Run(name, func(t *testing.T) {
			job := endedBatch(contract.Delete, test.code)
			pod := exited(test.code, test.message)
			if test.change != nil {
				test.change(pod)
			}
			out := jobs.ReadFor(job, "two", []*corev1.Pod{pod}, now)
			got := strings.TrimSpace(string(out.Verdict) + " " + out.Message)
			if got != test.want {
				t.Errorf("got %q (%s), want %q", got, out, test.want)
			}
			if strings.ContainsAny(out.Message, "\x00\x1b") || out.Finished != ended {
				t.Errorf("got %+v", out)
			}
		})
	}
}

// endedBatch is a Job of the claims one, two and three.
func endedBatch(verb contract.Verb, code int32) *batchv1.Job {
	job := counted(failed())
	if code == 0 {
		job = jobThat(batchv1.JobComplete, "CompletionsReached")
	}
	job.Labels = map[string]string{contract.LabelVerb: string(verb), contract.LabelClaimUID: "one"}
	job.Annotations = map[string]string{contract.AnnUIDs: "one,two,three"}
	return job
}

func TestItem10ABatchThatLeftNoPodIsDoneForNobody(t *testing.T) {
	for code, want := range map[int32]contract.Verdict{0: contract.Unlisted, 1: contract.Unknown} {
		if got := jobs.ReadFor(endedBatch(contract.Delete, code), "two", nil, now); got.Verdict != want || got.Message != "" {
			t.Errorf("exit code %d: %+v, want %s", code, got, want)
		}
	}
}

// Alone the exit code is the verdict, whatever the result says; its words are the claim's.
func TestItem10AJobOfOneIsReadByItsExitCode(t *testing.T) {
	for said, words := range map[string]string{
		"claim: no":                                       "no",
		line("two", 0, `,"message":"claim: no"`):          "no",
		line("two", 75, `,"message":"claim: no\nnoise"`):  "no",
		line("other", 65, `,"message":"claim: not mine"`): "",
		line("two", 65, "") + "claim: no":                 "no",
	} {
		got := jobs.ReadFor(failed(), "two", []*corev1.Pod{exited(65, said)}, now)
		if got.Verdict != contract.BadRequest || contract.ForClaim(got.Message) != words || !strings.Contains(got.Message, strings.TrimSpace(said)) {
			t.Errorf("%q is read as %+v", said, got)
		}
	}
}

func TestItem10TheCapacityOfAnExpandIsItsOwn(t *testing.T) {
	message := line("one", 0, `,"capacity":"5Gi"`) + line("two", 0, `,"capacity":4294967296`) + line("three", 0, "")
	for uid, want := range map[string]*resource.Quantity{
		"one": resource.NewQuantity(5<<30, resource.BinarySI), "two": resource.NewQuantity(4<<30, resource.BinarySI), "three": nil,
	} {
		got := jobs.ReadFor(endedBatch(contract.Expand, 0), uid, []*corev1.Pod{exited(0, message)}, now).Capacity
		if (got == nil) != (want == nil) || got != nil && got.Cmp(*want) != 0 {
			t.Errorf("%s has %v, want %v", uid, got, want)
		}
	}
	if got := jobs.ReadFor(endedBatch(contract.Delete, 0), "one", []*corev1.Pod{exited(0, message)}, now).Capacity; got != nil {
		t.Errorf("a delete has the capacity %v", got)
	}
}
