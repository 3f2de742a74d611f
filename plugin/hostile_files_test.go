package plugin_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/flex-provisioner/flex-provisioner/plugin"
)

// A file may be that of a merge request: names in it were checked by no API server.
func TestValidatePrintsNoControlCharacterOfAFile(t *testing.T) {
	const evil = `"g\u001b[31mold\u009b31m"`
	const evilFile = "g\x1b[31mold\u009b31m\n.yaml"
	const manifests = `
apiVersion: v1
kind: ConfigMap
metadata: {name: %[1]s, namespace: %[1]s, labels: {type: provisioner-config, storage-class: %[1]s}}
data: {image: %[1]s, service-account-name: %[1]s, verbs: %[1]s, %[1]s: %[1]s}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: plain, namespace: flex-provisioner, labels: {type: provisioner-config, storage-class: %[1]s}}
data: {image: x, service-account-name: %[1]s}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: twin, namespace: flex-provisioner, labels: {type: provisioner-config, storage-class: %[1]s}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: %[1]s}
provisioner: %[1]s
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: %[1]s, namespace: flex-provisioner}
`
	inFolder(t, map[string]string{evilFile: fmt.Sprintf(manifests, evil)})
	var out bytes.Buffer
	cmd := plugin.Command(time.Now)
	cmd.SetArgs([]string{"validate", "-f", "."})
	cmd.SetOut(&out)
	if err := cmd.Execute(); err == nil {
		t.Error("there is no error")
	}
	const file = `"g\x1b[31mold\u009b31m\n.yaml":`
	for _, says := range []string{"has the provisioner", "lacks the label", "\n" + file, "(" + file} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("no error says %q:\n%q", says, out.String())
		}
	}
	if at := strings.IndexFunc(out.String(), func(r rune) bool { return unicode.IsControl(r) && r != '\n' }); at >= 0 {
		t.Errorf("it prints %q", out.String()[max(at-40, 0):])
	}
}
