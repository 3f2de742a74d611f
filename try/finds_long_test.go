//go:build linux && long

package try_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/conform"
)

// breaking is the class of a script that breaks one promise. Its script follows.
const breaking = `apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: breaks}
provisioner: flex-provisioner.io
allowVolumeExpansion: true
---
apiVersion: v1
kind: Secret
metadata: {name: login, namespace: flex-provisioner}
data: {PASSWORD: YS1wYXNzd29yZC1vZi1icmVha3M=}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: breaks
  namespace: flex-provisioner
  labels: {type: provisioner-config, storage-class: breaks}
data:
  image: localhost/own:dev
  verbs: provision,delete,expand,list
  data-sources: PersistentVolumeClaim
  batch-size: "8"
  run-on: any
  timeout: 2m
  service-account-name: writer
  env-from-secret: login
  own: /var/lib/flex-volumes/.own
  breaks: %s
  pod-template: |
    spec:
      securityContext: {runAsNonRoot: false, runAsUser: 0, runAsGroup: 0}
      containers:
        - name: provisioner
          volumeMounts: [{name: volumes, mountPath: /var/lib/flex-volumes}]
      volumes: [{name: volumes, hostPath: {path: /var/lib/flex-volumes}}]
  script: |
    %s
`

// tryBreaking runs the trial of a script that breaks a promise.
func tryBreaking(t *testing.T, promise string) *conform.Report {
	t.Helper()
	script, err := os.ReadFile("../test/e2e/testdata/conforming-provisioner.sh")
	if err != nil {
		t.Fatal(err)
	}
	trial := parsed(t, fmt.Sprintf(breaking, promise, strings.ReplaceAll(string(script), "\n", "\n    ")))
	trial.Provoke = conform.Provocations{
		"bad-config": {Data: map[string]string{"mode": "wrong"}}, "bad-credentials": {Data: map[string]string{"login": "wrong"}}, "no-capacity": {Data: map[string]string{"room": "none"}},
	}
	trial.Skip = map[string]string{}
	for _, slow := range []string{"provision-killed", "delete-killed", "expand-killed"} {
		if promise != "nothing" && promise != slow {
			trial.Skip[slow] = "another script breaks it"
		}
	}
	return do(t, trial)
}

// A script that breaks one promise is found by that one alone, as by conform in a cluster: but for
// mount and clone, for which a pod compares the data.
func TestTryFindsTheOnePromiseThatAScriptBreaks(t *testing.T) {
	for _, name := range []string{
		"provision", "provision-pv", "list", "delete", "secret", "provision-again", "provision-abandoned", "provision-killed", "delete-killed",
		"expand", "expand-killed", "refuses", "undo-refused", "bad-config", "bad-credentials", "no-capacity", "batch", "quiet",
	} {
		t.Run(name, func(t *testing.T) {
			report := tryBreaking(t, name)
			for _, result := range report.Promises {
				if (result.Verdict == conform.Broken) != (result.Promise == name) || result.Verdict == conform.Failed {
					t.Errorf("%s: %s: %s", result.Promise, result.Verdict, result.Note)
				}
			}
		})
	}
}

func TestTryKeepsWhatAScriptKeeps(t *testing.T) {
	report := tryBreaking(t, "nothing")
	if report.Count(conform.Kept) != len(report.Promises)-1 || report.Count(conform.Skipped) != 1 {
		t.Errorf("%+v", report.Promises)
	}
}

func TestTryOfRecipesKeepsTheirPromises(t *testing.T) {
	for _, name := range []string{"node-directory", "file-server", "isolated"} {
		t.Run(name, func(t *testing.T) { mustKeep(t, do(t, recipe(t, name)), 7) })
	}
}

// It announces each volume to an inventory.
func TestTryOfTheSeededDirectoryKeepsItsPromises(t *testing.T) {
	inventory := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(inventory.Close)
	trial := recipe(t, "seeded-directory")
	trial.Configs[len(trial.Configs)-1].Data["notify-url"] = inventory.URL
	trial.Config = configOf(t, trial)
	mustKeep(t, do(t, trial), 7)
}
