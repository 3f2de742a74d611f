package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

// A key that is not read keeps no claim from its volume. It is in the log at once, and at the end
// in the message, which becomes an event of the Job.
func TestMisspeltKeyOfTheCloudConfigIsReported(t *testing.T) {
	s := fakeStore(t)
	s.binary = build(t)
	r := newRig(t, s, "auto")
	if err := os.Mkdir(filepath.Join(r.dir, "secret"), 0o700); err != nil {
		t.Fatal(err)
	}
	endpoint := strings.TrimPrefix(r.login, "OS_CINDER_ENDPOINT=")
	r.write("secret/cloud.conf", []byte("[Global]\ncinder-endpoint="+endpoint+"\ntenant-name=admin\npasword=hush\n"))
	code := r.run(contract.Provision)
	said := r.said.String()
	if code != contract.ExitDone || strings.Contains(said, "hush") {
		t.Fatalf("code %d: %s", code, said)
	}
	const warning = `cloud config cloud.conf: key "pasword" in [Global] is unknown, and is ignored; did you mean "password"?`
	const unused = "the environment: OS_CINDER_ENDPOINT is not used: the login is that of the file cloud.conf"
	if !strings.HasSuffix(said, "\nwarning: "+warning+"; "+unused+"\n") {
		t.Errorf("no warning in the message: %s", said)
	}
	if !strings.Contains(said, "level=WARN") || strings.Index(said, "level=WARN") > strings.Index(said, "msg=Starting") {
		t.Errorf("no warning at the start of the log: %s", said)
	}
}
