package decide

import "testing"

// Whatever else is known of a claim, nothing is written for it while one of its records is of a newer
// dispatcher.
func TestNothingIsWrittenWhileARecordIsOfANewerDispatcher(t *testing.T) {
	decided := 0
	everyCommon(t, func(v View) {
		if len(v.Runs) == 0 {
			return
		}
		oldest := v.Runs[0]
		v.Runs = append([]Run{oldest}, v.Runs[1:]...) // the walk's views share their runs
		v.Runs[0].Newer = true
		switch action := Decide(v).(type) { //nolint:gochecksumtype // the others are writes
		case ReportProblem, Wait:
			decided++
		default:
			t.Fatalf("%T of %+v", action, v)
		}
	})
	if decided == 0 {
		t.Error("no view has a run")
	}
}
