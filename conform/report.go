package conform

import (
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
)

// Verdict is what a run says of a promise.
type Verdict string

// Verdicts.
const (
	Kept        Verdict = "kept"
	Broken      Verdict = "BROKEN"
	NotClaimed  Verdict = "not claimed"  // the class or the config does not have it
	NotProvoked Verdict = "not provoked" // only the administrator knows how to reach it
	NotTested   Verdict = "not tested"   // it needs a promise that is broken, or could not be reached
	Skipped     Verdict = "skipped"      // the administrator does not want it
	Failed      Verdict = "failed"       // the cluster did not let it be tested
)

// Result is what a run says of one promise.
type Result struct {
	Promise string  `json:"promise"`
	Verdict Verdict `json:"verdict"`
	// Note is what was found, or why the promise was not tested.
	Note string `json:"note,omitempty"`
	// Output is the last lines of the container's, Contract what the contract says, of a broken promise.
	Output   string  `json:"output,omitempty"`
	Contract string  `json:"contract,omitempty"`
	Seconds  float64 `json:"seconds,omitempty"`
}

// Report is what a run has found.
type Report struct {
	metav1.TypeMeta `json:",inline"`

	Namespace string   `json:"namespace"`
	Class     string   `json:"class"`
	Config    string   `json:"config"`
	Image     string   `json:"image"`
	Promises  []Result `json:"promises"`
	// Claims is how many were created. Left are the names of PersistentVolumes of which something may be left.
	Claims int      `json:"claims"`
	Left   []string `json:"left,omitempty"`
	// Kept is set if the objects of broken promises, and the namespace, are kept.
	Kept bool `json:"kept,omitempty"`
}

// verdictError says what a test has found, if that is not that the promise is kept.
type verdictError struct {
	verdict      Verdict
	note, output string
}

func (e *verdictError) Error() string { return e.note }

func broken(format string, args ...any) error {
	return &verdictError{verdict: Broken, note: fmt.Sprintf(format, args...)}
}

func notClaimed(why string) error  { return &verdictError{verdict: NotClaimed, note: why} }
func notProvoked(why string) error { return &verdictError{verdict: NotProvoked, note: why} }
func notTested(format string, args ...any) error {
	return &verdictError{verdict: NotTested, note: fmt.Sprintf(format, args...)}
}

// isVerdict reports whether an error says what a test has found: waiting changes nothing about that.
func isVerdict(err error) bool { return errors.As(err, new(*verdictError)) }

// with returns the result of a test that ended with an error, nil if the promise is kept. What the test
// has found stays, whatever its clean-up says.
func (r Result) with(p Promise, err error) Result {
	var found *verdictError
	switch {
	case err == nil:
		return r
	case errors.As(err, &found):
		r.Verdict, r.Note, r.Output = found.verdict, quote.Line(found.note), quote.Lines(found.output)
	default:
		r.Verdict, r.Note = Failed, quote.Line(err.Error())
	}
	if r.Verdict == Broken {
		r.Contract = p.Contract
	}
	return r
}

func newReport(r *Run) *Report {
	src := r.Config.Source
	return &Report{
		Namespace: r.namespace.Name, Class: r.Class.Name, Config: src.Namespace + "/" + src.Name, Image: quote.Name(r.Config.Image), Promises: []Result{},
	}
}

func (r *Report) add(result Result) { r.Promises = append(r.Promises, result) }

// of returns the result of a promise, or nil.
func (r *Report) of(name string) *Result {
	for i := range r.Promises {
		if r.Promises[i].Promise == name {
			return &r.Promises[i]
		}
	}
	return nil
}

func (r *Report) isBroken(name string) bool {
	result := r.of(name)
	return result != nil && result.Verdict == Broken
}

// Count returns how many promises have a verdict.
func (r *Report) Count(verdict Verdict) (n int) {
	for _, result := range r.Promises {
		if result.Verdict == verdict {
			n++
		}
	}
	return n
}

// Broken returns how many promises are broken.
func (r *Report) Broken() int { return r.Count(Broken) }

// Print writes a result for people.
func (r Result) Print(out io.Writer) error {
	seconds := ""
	if r.Seconds >= 1 {
		seconds = fmt.Sprintf("%.0f s", r.Seconds)
	}
	head := fmt.Sprintf("  %-12s  %-20s  ", r.Verdict, r.Promise)
	note := quote.Indent(quote.Line(seconds+" "+r.Note), len(head))
	_, err := fmt.Fprintln(out, strings.TrimRight(head+note, " "))
	for line := range strings.SplitSeq(strings.TrimSpace(r.Output), "\n") {
		if line != "" && err == nil {
			_, err = fmt.Fprintf(out, "                  | %s\n", quote.Line(line))
		}
	}
	if r.Contract != "" && err == nil {
		_, err = fmt.Fprintf(out, "                contract: %s\n", quote.Indent(r.Contract, 26))
	}
	return err
}

// PrintHead writes what is tested.
func (r *Run) PrintHead(out io.Writer) error {
	src := r.Config.Source
	_, err := fmt.Fprintf(out, "class %s, ConfigMap %s/%s, image %s, verbs %v\n\n", src.Class, src.Namespace, src.Name, quote.Name(r.Config.Image), r.Config.Verbs)
	return err
}

// PrintEnd writes how many promises are kept, and what is left, with the commands for that. left is
// the form of a line about the volume of a PersistentVolume.
func (r *Report) PrintEnd(out io.Writer, left string) error {
	var text strings.Builder
	fmt.Fprintf(&text, "\n%d promises: %d kept, %d broken", len(r.Promises), r.Count(Kept), r.Broken())
	for _, verdict := range []Verdict{NotClaimed, NotProvoked, NotTested, Skipped, Failed} {
		if n := r.Count(verdict); n > 0 {
			fmt.Fprintf(&text, ", %d %s", n, verdict)
		}
	}
	fmt.Fprintf(&text, "; %d claims\n", r.Claims)
	for _, name := range r.Left {
		fmt.Fprintf(&text, left+"\n", name)
	}
	if r.Kept {
		fmt.Fprintf(&text, "what the broken promises have left is kept: kubectl delete namespace %s\n", r.Namespace)
	}
	_, err := io.WriteString(out, text.String())
	return err
}
