package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Share is our dispatcher's own share of the runs, in one phase of a run.
type Share struct {
	Phase string `json:"phase"`
	Verb  string `json:"verb"`
	Runs  uint64 `json:"runs"`
	// P50 is within how many seconds half of them were done, as exactly as the buckets say.
	P50 float64 `json:"p50"`
}

// ownSeries is the histogram of the shares.
const ownSeries = "flex_dispatcher_own_seconds"

// ReadShares reads the shares from the dispatcher's metrics, those of one verb together.
func ReadShares(metrics io.Reader) ([]Share, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(metrics)
	if err != nil {
		return nil, fmt.Errorf("read the dispatcher's metrics: %w", err)
	}
	var out []Share
	for _, one := range families[ownSeries].GetMetric() {
		s := Share{Runs: one.GetHistogram().GetSampleCount(), P50: median(one.GetHistogram())}
		for _, label := range one.GetLabel() {
			switch label.GetName() {
			case "phase":
				s.Phase = label.GetValue()
			case "verb":
				s.Verb = label.GetValue()
			}
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b Share) int { return cmp.Or(cmp.Compare(a.Verb, b.Verb), cmp.Compare(a.Phase, b.Phase)) })
	return out, nil
}

// median returns where half of the samples of a histogram lie, if those of a bucket lie evenly.
func median(h *dto.Histogram) float64 {
	half, below, from := float64(h.GetSampleCount())/2, 0.0, 0.0
	for _, bucket := range h.GetBucket() {
		upTo, to := float64(bucket.GetCumulativeCount()), bucket.GetUpperBound()
		if upTo >= half && upTo > below {
			return from + (to-from)*(half-below)/(upTo-below)
		}
		below, from = upTo, to
	}
	return from
}

// shares says what the dispatcher's own share was.
func shares(r Results) string {
	rows := [][]string{{"cell", "verb", "phase", "runs", "p50 ms"}}
	for _, one := range r {
		for _, s := range one.Own {
			rows = append(rows, []string{one.name(), s.Verb, s.Phase, strconv.FormatUint(s.Runs, 10), number(1000 * s.P50)})
		}
	}
	if len(rows) == 1 {
		return ""
	}
	return table("The dispatcher's own share of a run", rows)
}

// ownShare returns the sum of the medians of a verb's phases.
func (r Result) ownShare(verb string) float64 {
	sum := 0.0
	for _, s := range r.Own {
		if s.Verb == verb {
			sum += s.P50
		}
	}
	return sum
}
