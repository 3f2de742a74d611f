package plugin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/yaml"

	"github.com/flex-provisioner/flex-provisioner/contract"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/quote"
	"github.com/flex-provisioner/flex-provisioner/dispatcher/reason"
)

// printer prints what a command has found.
type printer struct {
	out io.Writer
	now time.Time
	err error
}

// checkFormat returns why an output format is none, or nil.
func checkFormat(format string) error {
	if slices.Contains([]string{"", "json", "yaml"}, format) {
		return nil
	}
	return fmt.Errorf("--output=%s: must be json or yaml", quote.Name(format))
}

// printObject prints an object in a format of machines. It reports whether that was one.
func printObject(out io.Writer, format string, obj any) (bool, error) {
	var text []byte
	var err error
	switch format {
	case "":
		return false, nil
	case "json":
		text, err = json.MarshalIndent(obj, "", "  ")
		text = append(text, '\n')
	case "yaml":
		text, err = yaml.Marshal(obj)
	default:
		return true, checkFormat(format)
	}
	if err != nil {
		return true, fmt.Errorf("print the %T: %w", obj, err)
	}
	_, err = out.Write(text)
	return true, err
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.out, format, args...)
	}
}

// ago returns how long ago a time was, in kubectl's form.
func (p *printer) ago(t *metav1.Time) string {
	if t == nil {
		return "-"
	}
	return duration.HumanDuration(p.now.Sub(t.Time)) + " ago"
}

// Print prints why a claim is as it is, for people.
func Print(out io.Writer, now time.Time, r *Report) error {
	return (&printer{out: out, now: now}).report(r)
}

// chained is the column at which the last cells of the chain begin, with an age of the longest and
// the verb provision.
const chained = 26

// report prints why a claim is as it is. The cause, the remedy and the next step come last: they
// stay in view, however long the rest is.
func (p *printer) report(r *Report) error {
	p.heading(r)
	p.table(func(out io.Writer) { p.chain(out, r) })
	if len(r.NotRead) > 0 && r.State != OK {
		p.printf("  you may not read: %s\n", quote.Indent(strings.Join(r.NotRead, "; "), 20))
	}
	for _, text := range r.Warnings {
		p.line("warning", text)
	}
	p.line("claim", r.ClaimState)
	p.printf("state   %s%s\n", r.State, inParentheses(r.Reason))
	p.line("more", reason.Page(r.Reason))
	p.line("cause", r.Cause)
	p.line("remedy", r.Remedy)
	p.line("next", p.next(r))
	return p.err
}

// chain prints what there is for a claim, from the claim to its volume.
func (p *printer) chain(out io.Writer, r *Report) {
	rows := &printer{out: out, now: p.now}
	if r.Created != nil {
		rows.printf("  %s\tclaim\tcreated\n", p.ago(r.Created))
	}
	if r.Config != "" {
		rows.printf("  \tconfig\tConfigMap %s\n", r.Config)
	}
	if r.Revision != "" {
		rows.printf("  \trevision\t%s\n", r.Revision)
	}
	for i, run := range r.Runs {
		same := run.Message
		for _, later := range r.Runs[i+1:] {
			if run.saysLike(later) {
				same = fmt.Sprintf("(the same as attempt %d)", later.Attempt)
			}
		}
		run.Message = same
		rows.run(run)
	}
	if r.Volume != "" {
		rows.printf("  \tvolume\tPersistentVolume %s\n", r.Volume)
	}
	p.err = cmp.Or(p.err, rows.err)
}

func (p *printer) heading(r *Report) {
	name := r.Claim
	if name == "" {
		name = "the claim with the UID " + r.UID
	}
	p.printf("%s", name)
	if r.Size != "" {
		p.printf(", %s of the class %s%s", r.Size, cmp.Or(r.Class, "-"), inParentheses(r.Phase))
	} else {
		p.printf(": the claim no longer exists")
	}
	p.printf("\n")
}

func inParentheses(text string) string {
	if text == "" {
		return ""
	}
	return " (" + text + ")"
}

// line prints a line that has something to say. What a storage says may have several lines.
func (p *printer) line(key, text string) {
	if text != "" {
		p.printf("%-7s %s\n", key, quote.Indent(text, 8))
	}
}

func (p *printer) next(r *Report) string {
	switch {
	case r.NextAt == nil:
		return r.Next
	case r.Next == "":
		return "a correction takes effect at once; it is checked again in " + duration.HumanDuration(max(r.NextAt.Sub(p.now), 0))
	default:
		return r.Next + ", in " + duration.HumanDuration(max(r.NextAt.Sub(p.now), 0))
	}
}

// saysLike reports whether what the container of a Job said fills more than a line, and a later
// attempt of the verb, which failed as well, said the same.
func (r Run) saysLike(later Run) bool {
	const line = quote.Columns - chained - 2
	return len(r.Message) > line && r.Message == later.Message && r.Verb == later.Verb && later.Verdict != string(contract.Done)
}

// run prints a Job, whose name fills most of a line.
func (p *printer) run(r Run) {
	node := "any node"
	if r.Node != "" {
		node = r.Node
	}
	p.printf("  %s\t%s\tattempt %d on %s", p.ago(&r.Created), r.Verb, r.Attempt, node)
	if r.Claims > 1 {
		p.printf(", with %d other claims", r.Claims-1)
	}
	switch {
	case r.Verdict == "":
		p.printf(": %s\n", r.State)
	case r.Verdict == string(contract.Done):
		p.printf(": %s\n", r.Verdict)
	default:
		p.printf(": %s, %s\n", r.Verdict, r.Outcome)
	}
	p.printf("  \t\tJob %s\n", r.Job)
	if r.Verdict == string(contract.Done) {
		return
	}
	for _, line := range quote.Wrap(r.Message, quote.Columns-chained-2) {
		if line != "" {
			p.printf("  \t\t| %s\n", line)
		}
	}
}

// states prints how many claims of a class are in each state.
func (p *printer) states(c Class) {
	for i, state := range slices.Sorted(maps.Keys(c.States)) {
		between := ", "
		if i == 0 {
			between = fmt.Sprintf("\nclass %s: ", cmp.Or(c.Name, "-"))
		}
		p.printf("%s%d %s", between, c.States[state], state)
	}
	if len(c.States) > 0 {
		p.printf("\n")
	}
}
