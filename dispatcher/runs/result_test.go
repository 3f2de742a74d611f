package runs_test

import (
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/jobs"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/runs"
)

// line returns a result as an image writes it.
func line(uid string, code int, more string) string {
	return fmt.Sprintf(`{"uid":%q,"code":%d%s}`+"\n", uid, code, more)
}

func TestEachRequestOfABatchHasItsOwnOutcome(t *testing.T) {
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
		"never made":                        {code: 137, change: func(p *corev1.Pod) { neverMade(p); because("DeadlineExceeded", "late")(p) }, want: "NotStarted late"},
		"past its deadline":                 {code: 137, change: because("DeadlineExceeded", "late"), want: "Unlisted"},
		"an escape in its message is shown": {code: 1, message: line("two", 75, `,"message":"a\u001b[31mb"`), want: "TryAgain a[31mb"},
	} {
		t.Run(name, func(t *testing.T) {
			job := endedBatch(contract.Delete, test.code)
			pod := exited(test.code, test.message)
			if test.change != nil {
				test.change(pod)
			}
			out := runs.ReadFor(job, "two", []*corev1.Pod{pod}, now)
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

// endedBatch returns a Job of the claims one, two and three.
func endedBatch(verb contract.Verb, code int32) *batchv1.Job {
	job := counted(failed())
	if code == 0 {
		job = jobThat(batchv1.JobComplete, "CompletionsReached")
	}
	job.Labels = map[string]string{jobs.LabelVerb: string(verb), contract.LabelClaimUID: "one"}
	job.Annotations = map[string]string{jobs.AnnUIDs: "one,two,three"}
	return job
}

func TestBatchWithoutAPodIsDoneForNoRequest(t *testing.T) {
	for _, code := range []int32{0, 1} {
		if got := runs.ReadFor(counted(endedBatch(contract.Delete, code)), "two", nil, now); got.Verdict != contract.Unknown || got.Message != "" {
			t.Errorf("exit code %d: %+v", code, got)
		}
	}
}

// For a single request the exit code is the verdict, whatever its result says. The result's message
// is the claim's.
func TestJobOfOneRequestIsReadByItsExitCode(t *testing.T) {
	for said, words := range map[string]string{
		"claim: no":                                       "no",
		line("two", 0, `,"message":"claim: no"`):          "no",
		line("two", 75, `,"message":"claim: no\nnoise"`):  "no",
		line("other", 65, `,"message":"claim: not mine"`): "",
		line("two", 65, "") + "claim: no":                 "no",
	} {
		got := runs.ReadFor(failed(), "two", []*corev1.Pod{exited(65, said)}, now)
		if got.Verdict != contract.BadRequest || contract.ForClaim(got.Message) != words || !strings.Contains(got.Message, strings.TrimSpace(said)) {
			t.Errorf("%q is read as %+v", said, got)
		}
	}
}

func TestEachExpandOfABatchHasItsOwnCapacity(t *testing.T) {
	message := line("one", 0, `,"capacity":"5Gi"`) + line("two", 0, `,"capacity":4294967296`) + line("three", 0, "")
	for uid, want := range map[string]*resource.Quantity{
		"one": resource.NewQuantity(5<<30, resource.BinarySI), "two": resource.NewQuantity(4<<30, resource.BinarySI), "three": nil,
	} {
		got := runs.ReadFor(endedBatch(contract.Expand, 0), uid, []*corev1.Pod{exited(0, message)}, now).Capacity
		if (got == nil) != (want == nil) || got != nil && got.Cmp(*want) != 0 {
			t.Errorf("%s has %v, want %v", uid, got, want)
		}
	}
	if got := runs.ReadFor(endedBatch(contract.Delete, 0), "one", []*corev1.Pod{exited(0, message)}, now).Capacity; got != nil {
		t.Errorf("a delete has the capacity %v", got)
	}
}
