package cinder

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cinder/failure"
	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// How long and how often a run waits when it is asked to. The next run retries what takes longer: a
// Job that waits occupies a slot that another claim could use.
const (
	longestWait = 30 * time.Second
	mostWaits   = 3
)

// retryPolicy repeats a request that was rejected before anything was done, if the answer says when
// to repeat it.
func retryPolicy(wait volume.Wait) gophercloud.RetryFunc {
	return func(ctx context.Context, method, _ string, _ *gophercloud.RequestOpts, err error, failed uint) error {
		pause, ok := pauseAsked(method, err)
		if !ok || failed > mostWaits || wait(ctx, pause) != nil {
			return err
		}
		return nil
	}
}

// pauseAsked returns how long the answer asks to wait, and whether the request may be repeated. A
// request with the answer 429 was not executed. With 503, a proxy may say so of a server that did
// execute it, so that only GET is repeated.
func pauseAsked(method string, err error) (time.Duration, bool) {
	answer, ok := failure.AnswerIn(err)
	if !ok {
		return 0, false
	}
	if answer.Actual != http.StatusTooManyRequests && (answer.Actual != http.StatusServiceUnavailable || method != http.MethodGet) {
		return 0, false
	}
	seconds, err := strconv.Atoi(answer.ResponseHeader.Get("Retry-After"))
	pause := time.Duration(seconds) * time.Second
	return pause, err == nil && seconds > 0 && pause <= longestWait
}
