//go:build linux && long

package remote

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flex-provisioner/flex-provisioner/conform"
	"github.com/flex-provisioner/flex-provisioner/plugin"
)

// The recipe http is tried as a newcomer tries it: its file, a login, and a storage on loopback.
func TestTryOfTheRecipeHTTPKeepsItsPromises(t *testing.T) {
	storage := newAppliance(t)
	storage.room = 1 << 50
	dir := t.TempDir()
	file, err := os.ReadFile(filepath.Join(repository, "configmaps/http.yaml"))
	must(t, err)
	files := map[string]string{
		"http.yaml":    strings.Replace(string(file), "https://storage.example/api/v1", storage.server.URL, 1),
		"login.yaml":   "{apiVersion: v1, kind: Secret, metadata: {name: http}, stringData: {header: 'Authorization: Bearer " + login + "'}}\n",
		"provoke.yaml": "refuses: {volumeMode: Block}\nbad-config: {data: {api: ''}}\n",
	}
	for name, content := range files {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	var out, log bytes.Buffer
	cmd := plugin.Command(time.Now)
	cmd.SetOut(&out)
	cmd.SetErr(&log)
	cmd.SetArgs([]string{
		"try", filepath.Join(dir, "http.yaml"), filepath.Join(dir, "login.yaml"), "--yes", "--kills=1", "--output=json", "--provoke=" + filepath.Join(dir, "provoke.yaml"),
	})
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v: %s%s", err, out.String(), log.String())
	}
	var report conform.Report
	must(t, json.Unmarshal(out.Bytes(), &report))
	if report.Broken() > 0 || report.Count(conform.Kept) < 14 || len(report.Left) > 0 || len(storage.volumes) > 0 {
		t.Errorf("%d volumes are left: %s", len(storage.volumes), out.String())
	}
	if strings.Contains(out.String(), login) {
		t.Error("the report has the login")
	}
}
