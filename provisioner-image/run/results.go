package run

import (
	"fmt"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// mostNote is the length of a line that is about no single request. The results of the largest
// batch, two such lines and some bytes more are as long as a termination message.
const mostNote = 200

// JudgeAll returns how a run ended. Its exit code says whether all tasks are done. A batch reports
// each of them on a line of the message.
func JudgeAll(all []Ended) Result {
	if len(all) == 1 && !all[0].Task.Shared {
		one := all[0]
		return WithWarnings(Judge(one.Task, one.Report, one.Err), one.Task.Login.Warnings)
	}
	out := Result{Code: contract.ExitDone}
	var results []contract.Result
	var alone []string
	for _, one := range all {
		judged := Judge(one.Task, one.Report, one.Err)
		if judged.Code != contract.ExitDone {
			out.Code = contract.ExitTempFail // those of the tasks are in their results
		}
		if isForAlone(one.Task, one.Err) {
			alone = append(alone, one.Err.Error())
			continue
		}
		results = append(results, resultOf(one.Task.Request.UID, judged))
	}
	notes := noteAlone(alone) + noteWarnings(all)
	// A message of the largest possible length would be taken for one that is cut off.
	out.Message = contract.EncodeResults(results, contract.MaxMessage-1-len(notes)) + notes
	return out
}

// noteAlone returns a line about the requests that have no result.
func noteAlone(reasons []string) string {
	if len(reasons) == 0 {
		return ""
	}
	return oneLine(fmt.Sprintf("%d requests must be served alone: %s", len(reasons), reasons[0]), mostNote-1) + "\n"
}

// noteWarnings returns a line about the login, which all requests share.
func noteWarnings(all []Ended) string {
	if len(all) == 0 || len(all[0].Task.Login.Warnings) == 0 {
		return ""
	}
	return oneLine("warning: "+strings.Join(all[0].Task.Login.Warnings, "; "), mostNote-1) + "\n"
}

// resultOf returns the result of one request of a batch. The message of an expand holds the
// volume's size.
func resultOf(uid string, judged Result) contract.Result {
	r := contract.NewResult(uid, int32(judged.Code)) //nolint:gosec // exit codes are small
	var rest strings.Builder
	for line := range strings.Lines(judged.Message) {
		if own := contract.DecodeResults(line); len(own) > 0 {
			r.Capacity = own[0].Capacity
			continue
		}
		rest.WriteString(line)
	}
	r.Message = strings.TrimSuffix(rest.String(), "\n")
	return r
}
