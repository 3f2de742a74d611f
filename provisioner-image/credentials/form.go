package credentials

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Files reads one of the files that came with the login, by the name or path that it was given there.
type Files func(name string) ([]byte, error)

// login resolves the files and the clouds.yaml that the form names, and returns every fault of the result at once.
// The origin says where the form was read.
func (f form) login(origin string, files Files) (Login, error) {
	if err := f.followClouds(files); err != nil {
		return Login{}, fmt.Errorf("%s: %w", origin, err)
	}
	fault := f.followFiles(files)
	f.normalize()
	if err := errors.Join(fault, f.check()); err != nil {
		return Login{}, fmt.Errorf("credentials from %s: %w", origin, err)
	}
	return f.Login, nil
}

// followClouds sets from a clouds.yaml what the form does not set itself.
func (f *form) followClouds(files Files) error {
	use, err := parseBool("use-clouds", f.useClouds)
	if !use || err != nil {
		return err
	}
	name := cmp.Or(f.cloudsFile, "clouds.yaml")
	data, err := files(name)
	if err != nil {
		return err
	}
	from, err := readClouds(name, data, f.cloud)
	if err != nil {
		return err
	}
	for _, known := range fields() {
		if at := known.at(f); *at == "" {
			*at = *known.at(&from)
		}
	}
	return nil
}

func (f *form) followFiles(files Files) error {
	var err, caErr, certErr, keyErr error
	f.Insecure, err = parseBool("tls-insecure", f.insecure)
	f.CA, caErr = content(files, f.caFile)
	f.ClientCert, certErr = content(files, f.certFile)
	key, keyErr := content(files, f.keyFile)
	f.ClientKey = Secret(key)
	return errors.Join(err, caErr, certErr, keyErr)
}

func content(files Files, name string) (string, error) {
	if name == "" {
		return "", nil
	}
	data, err := files(name)
	return string(data), err
}

// normalize accepts the longer names of endpoint types, and a keystone URL without a version.
func (f *form) normalize() {
	f.EndpointType = strings.TrimSuffix(f.EndpointType, "URL")
	f.AuthURL = withVersion(f.AuthURL)
}

func parseBool(key, text string) (bool, error) {
	if text == "" {
		return false, nil
	}
	yes, err := strconv.ParseBool(text)
	if err != nil {
		return false, fmt.Errorf("%s is neither true nor false", key)
	}
	return yes, nil
}
