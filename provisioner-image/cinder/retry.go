package cinder

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/volume"
)

// How long and how often a run waits because it was asked to. What takes longer is for the next run: a
// Job that waits keeps a place that another claim could have.
const (
	longestWait = 30 * time.Second
	mostWaits   = 3
)

// retryPolicy repeats a request that was turned away before anything was done, when the answer says how
// soon it may come again.
func retryPolicy(wait volume.Wait) gophercloud.RetryFunc {
	return func(ctx context.Context, method, _ string, _ *gophercloud.RequestOpts, err error, failed uint) error {
		pause, ok := pauseAsked(method, err)
		if !ok || failed > mostWaits || wait(ctx, pause) != nil {
			return err
		}
		return nil
	}
}

// pauseAsked: 429 turns every request away. 503 is also what a proxy says when the server behind it may
// have done what was asked, so that only what changes nothing is repeated.
func pauseAsked(method string, err error) (time.Duration, bool) {
	answer, ok := answerIn(err)
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
