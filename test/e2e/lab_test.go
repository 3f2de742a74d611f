//go:build e2e && (long || storms)

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"
)

// toServe is how long a part that was started may take to serve. Cinder looks at all of its volumes
// first.
const toServe = 6 * time.Minute

func script(ctx context.Context, path string, args ...string) error {
	out, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %v: %w: %s", path, args, err, out)
	}
	return err
}

func startCinder(ctx context.Context) error {
	return pollEvery(ctx, 2*time.Second, toServe, func(ctx context.Context) error {
		if err := script(ctx, "../cinder/service.sh", "start", "cinder"); err != nil {
			return err
		}
		var body struct {
			Pools []struct{ Name string } `json:"pools"`
		}
		err := askCinder(ctx, "/scheduler-stats/get_pools", &body)
		if err == nil && len(body.Pools) == 0 {
			err = errors.New("no backend of Cinder is up")
		}
		return err
	})
}
