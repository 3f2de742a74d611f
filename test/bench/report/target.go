package report

// Judgement says whether a target was met.
type Judgement string

// The judgements.
const (
	Met        Judgement = "met"
	Missed     Judgement = "missed"
	Unmeasured Judgement = "not measured"
)

// Target is a number that is to be reached in the same run.
type Target struct {
	Topic Topic  `json:"topic"`
	What  string `json:"what"`
	// Must is set on targets that have to be met. The others are aims.
	Must bool `json:"must"`
	// AtMost is set where less is better.
	AtMost bool `json:"atMost,omitempty"`
	// Want and Measured are in the unit of the target. Ratio is how many times what the others have
	// together was measured, or how many times Want where there are no others. It is 0 for none.
	Want     float64   `json:"want"`
	Measured float64   `json:"measured"`
	Ratio    float64   `json:"ratio,omitempty"`
	Result   Judgement `json:"result"`
}

// judge fills in Ratio and Result of what was measured.
func (t *Target) judge(others float64) {
	t.Result = Missed
	if t.AtMost && t.Measured <= t.Want || !t.AtMost && t.Measured >= t.Want {
		t.Result = Met
	}
	if others > 0 {
		t.Ratio = t.Measured / others
	}
}
