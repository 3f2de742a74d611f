package shell

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// The kernel says "no such file" about the script, which is there.
func TestAnInterpreterThatTheImageLacks(t *testing.T) {
	for line, lacks := range map[string]string{
		"#!/no/such/python3":           "/no/such/python3",
		"#! /no/such/python3 -u":       "/no/such/python3",
		"#!/usr/bin/env no-such-thing": "no-such-thing",
		"#!/usr/bin/env bash -e":       "bash -e",
		"#!/bin/bash\r":                `/bin/bash\r`,
		"#!bash":                       "bash",
		"#!/bin":                       "/bin",
	} {
		for _, requests := range []int{1, 3} {
			t.Run(fmt.Sprint(line, requests), func(t *testing.T) {
				lackingRun(t, requests, line, lacks)
			})
		}
	}
}

func lackingRun(t *testing.T, requests int, line, lacks string) {
	t.Helper()
	p := newPod(t, contract.Provision, requests)
	cmd := p.each(8, "")
	p.write("provision", line+"\necho ran\n")
	code := exitOf(t, cmd.Run())
	want := fmt.Sprintf("claim: the first line of %s/provision names the program \"%s\", which this image does not have. "+
		"Remedy: name an image that has it in the key image", p.dir, lacks)
	if strings.Contains(p.says.String(), "python3 -u") {
		t.Errorf("the message repeats an argument: %s", &p.says)
	}
	if code != contract.ExitConfig || !strings.Contains(p.says.String(), want) {
		t.Errorf("exit %d: %s", code, &p.says)
	}
	if requests == 1 {
		return // the log is its message
	}
	got := p.results()
	for n := range requests {
		r := got[uid(n)]
		if r.Code == nil || *r.Code != contract.ExitConfig || !strings.Contains(r.Message, want) {
			t.Errorf("claim %d has %+v", n, r)
		}
	}
}

func TestAnInterpreterThatTheImageHas(t *testing.T) {
	for _, line := range []string{
		"#!/bin/bash", "#! /bin/bash -e", "#!/usr/bin/env bash", "#!/usr/bin/env\tbash",
		"#!/usr/bin/env -S bash -e", "#!/usr/bin/env -S A=b bash",
	} {
		for _, requests := range []int{1, 2} {
			p := newPod(t, contract.Provision, requests)
			cmd := p.each(8, "")
			p.write("provision", line+"\ntouch \"$FLEX_TEST_DIR/ran.$FLEX_CLAIM_UID\"\n")
			if code := exitOf(t, cmd.Run()); code != 0 {
				t.Errorf("%q: exit %d: %s", line, code, &p.says)
			}
		}
	}
}
