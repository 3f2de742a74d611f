package cinder_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
	"github.com/flex-provisioner/flex-provisioner/test/cindertest"
)

// The lab's clouds.yaml, beside the openrc file, has a password and an application credential.
func TestEveryCloudOfACloudsFileLogsIn(t *testing.T) {
	server := cindertest.New()
	t.Cleanup(server.Close)
	keystone := cindertest.NewKeystone(server)
	t.Cleanup(keystone.Close)
	fake := t.TempDir()
	text := fmt.Sprintf("clouds: {demo: {auth: {auth_url: %s/v3, username: u, password: %s, project_name: p}}}\n", keystone.URL, keystone.Password)
	if err := os.WriteFile(filepath.Join(fake, "clouds.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("fake", func(t *testing.T) { testCloud(t, fake, "demo") })
	openrc := os.Getenv("FLEX_TEST_CINDER")
	if openrc == "" || readOpenrc(t, openrc).AuthURL == "" {
		return
	}
	for _, cloud := range []string{"demo", "demo-application-credential"} {
		t.Run("real/"+cloud, func(t *testing.T) { testCloud(t, filepath.Dir(openrc), cloud) })
	}
}

func testCloud(t *testing.T, dir, cloud string) {
	t.Helper()
	login, err := credentials.FromEnv(map[string]string{"OS_CLOUD": cloud}, func(name string) ([]byte, error) {
		return os.ReadFile(filepath.Join(dir, name))
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, login).Find(t.Context(), "no claim"); err != nil {
		t.Error(err)
	}
}
