package input

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/provisioner-image/credentials"
)

// secretDir is contract.SecretDir, relative to contract.Dir.
const secretDir = "secret"

// readLogin reads the file that the property cloud-config names, or else the first of the usual
// files that exists, or else the environment.
func readLogin(in Sources, c class) (credentials.Login, error) {
	if err := checkProxies(in.Env); err != nil {
		return credentials.Login{}, err
	}
	for _, name := range loginFiles(c) {
		data, err := in.secret(name)
		if err == nil {
			login, err := loginFrom(in, c, name, data)
			login.Warnings = append(login.Warnings, credentials.UnusedVars(in.Env, name)...)
			return login, err
		}
		if c.cloudConfig != "" || !errors.Is(err, fs.ErrNotExist) {
			return credentials.Login{}, err
		}
	}
	return credentials.FromEnv(in.Env, in.secret)
}

// checkProxies refuses a proxy that is no URL: the login would be sent without it, since net/http uses none
// then (init in golang.org/x/net/http/httpproxy). Its password is not shown.
func checkProxies(env map[string]string) error {
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"} {
		text := env[name]
		if text != "" && !strings.Contains(text, "://") {
			text = "http://" + text
		}
		if at, err := url.Parse(text); err != nil || text != "" && (at.Host == "" || at.RequestURI() != "/" || at.Fragment != "") {
			return fmt.Errorf("the variable %s must be the URL of a proxy: write http://HOST:PORT, and characters such as # / ? @ in a password as %%23 %%2F %%3F %%40", name)
		}
	}
	return nil
}

func loginFiles(c class) []string {
	if c.cloudConfig != "" {
		return []string{c.cloudConfig}
	}
	return []string{"cloud.conf", "cloud-config", "clouds.yaml"}
}

func loginFrom(in Sources, c class, name string, data []byte) (credentials.Login, error) {
	which := c.cloud
	if which == "" {
		which = in.Env["OS_CLOUD"]
	}
	if ext := path.Ext(name); ext != ".yaml" && ext != ".yml" {
		return credentials.FromConfig(name, data, which, in.secret)
	}
	return credentials.FromClouds(name, data, which, in.secret)
}

// fileName matches what may be the name of a file, and is repeated in errors. A client key that was written
// in the place of its file's name once stood in the events of every claim
// (TestAKeyInThePlaceOfItsFileIsNotRepeated).
var fileName = regexp.MustCompile(`^[A-Za-z0-9._/-]{1,100}$`)

// secret reads a file of the config's files-from-secret. The image has no other files, so a path,
// such as a cloud config has it that was written for another program, stands for the file of that
// name in the Secret.
func (in Sources) secret(name string) ([]byte, error) {
	if !fileName.MatchString(name) {
		return nil, errors.New("the login does not name a file of the Secret: write the certificate or the key to a file of the Secret that the config names in files-from-secret," +
			" and the name of that file here")
	}
	file := path.Base(path.Clean("/" + name))
	data, err := fs.ReadFile(in.Dir, path.Join(secretDir, file))
	if err == nil {
		return data, nil
	}
	if name != file {
		return nil, fmt.Errorf("file %s is missing: add it as %s to the Secret that the config names in files-from-secret: %w",
			name, file, err)
	}
	return nil, fmt.Errorf("read %s from the Secret that the config names in files-from-secret: %w", file, err)
}
