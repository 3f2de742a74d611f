package order

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/cloud"
)

// secretDir is contract.SecretDir within contract.Dir.
const secretDir = "secret"

// readLogin reads the cloud config that the property cloud-config names, else one of the usual names,
// else the environment.
func readLogin(in Input, named string) (cloud.Login, error) {
	candidates := []string{"cloud.conf", "cloud-config"}
	if named != "" {
		candidates = []string{named}
	}
	for _, name := range candidates {
		data, err := fs.ReadFile(in.Dir, path.Join(secretDir, name))
		if err == nil {
			return cloud.FromConfig(name, data)
		}
		if named != "" || !errors.Is(err, fs.ErrNotExist) {
			return cloud.Login{}, fmt.Errorf("read cloud config %s from the config's files-from-secret: %w", name, err)
		}
	}
	return cloud.FromEnv(in.Env)
}
