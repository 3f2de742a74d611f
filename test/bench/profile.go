package main

import (
	"context"
	"os"
	"path/filepath"
)

// profiled is how many seconds of a phase are profiled, from its beginning.
const profiled = "10"

// startProfile profiles the API server, if it is asked to. What it returns yields nil or an error
// when the profile is written.
func (b *bench) startProfile(ctx context.Context, phase string) <-chan error {
	written := make(chan error, 1)
	if !b.profile {
		written <- nil
		return written
	}
	file := filepath.Join(b.logs, string(b.cell.Column)+"-"+b.cell.Row.Name+"-"+phase+"-kube-apiserver.pprof")
	go func() {
		text, err := b.cluster.client.CoreV1().RESTClient().Get().AbsPath("/debug/pprof/profile").Param("seconds", profiled).DoRaw(ctx)
		if err == nil {
			err = os.WriteFile(file, text, 0o600)
		}
		written <- err
	}()
	return written
}
