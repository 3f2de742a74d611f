package shell

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/flex-provisioner/flex-provisioner/contract"
)

var secretVerb = verb{
	name: "secret", arguments: "TYPE KEY=FILE... | --delete", made: true,
	does: "create the Secret of the claim's volume from files, in place of an earlier one, and print its namespace; or delete it",
	run:  secret,
}

// secret creates or deletes the Secret that has the PV's name. Its values come from files, since
// the arguments of a program can be seen.
func secret(in *container, arguments []string) error {
	if len(arguments) == 0 || len(arguments) == 1 && arguments[0] != "--delete" {
		return misused("a type and files are required: flex secret TYPE KEY=FILE..., or flex secret --delete")
	}
	name, err := in.required(contract.PropPVName)
	if err != nil {
		return err
	}
	namespace, err := os.ReadFile(filepath.Join(in.account, "namespace"))
	if err != nil {
		return err
	}
	api, err := in.server()
	if err != nil {
		return err
	}
	space := strings.TrimSpace(string(namespace))
	all := "/api/v1/namespaces/" + url.PathEscape(space) + "/secrets"
	if arguments[0] == "--delete" {
		return api.patiently(func() error { return api.deleteSecret(all, name) })
	}
	body, err := in.secret(name, arguments[0], arguments[1:])
	if err != nil {
		return err
	}
	if err := api.patiently(func() error { return api.createSecret(all, name, body) }); err != nil {
		return err
	}
	fmt.Fprintln(in.out, space)
	return nil
}

// secret returns the Secret with the content of some files. It has the labels by which an audit
// finds it, and the policy for the pods of a batch allows it.
func (in *container) secret(name, kind string, files []string) (object, error) {
	data := object{}
	for _, file := range files {
		key, path, found := strings.Cut(file, "=")
		if !found || key == "" {
			return nil, misused("%q must be KEY=FILE", cut(file))
		}
		content, err := os.ReadFile(path) //nolint:gosec // the script names it
		if err != nil {
			return nil, err
		}
		data[key] = base64.StdEncoding.EncodeToString(content)
	}
	uid, err := in.required(contract.PropClaimUID)
	if err != nil {
		return nil, err
	}
	labels := contract.SecretLabels(uid, in.property(contract.PropStorageClass))
	return object{"apiVersion": "v1", "kind": "Secret", "type": kind, "data": data, "metadata": object{"name": name, "labels": labels}}, nil
}

// createSecret replaces an existing Secret, since it may hold another password. It cannot be read:
// no permission covers names that are made at run time.
func (s *server) createSecret(path, name string, secret object) error {
	body, err := json.Marshal(secret)
	if err != nil {
		return err
	}
	for range 2 {
		answer, err := s.ask(http.MethodPost, path+"?fieldValidation=Strict", body)
		switch {
		case err != nil:
			return err
		case answer.code/100 == 2:
			return nil
		case answer.code != http.StatusConflict:
			return fmt.Errorf("the API server refuses the Secret %s: %s. Remedy: correct the script or the image, or its permissions", name, answer.message())
		}
		if err := s.deleteSecret(path, name); err != nil {
			return err
		}
	}
	return laterError{error: fmt.Errorf("the Secret %s is created by another run meanwhile", name)}
}

// deleteSecret succeeds if there is no Secret.
func (s *server) deleteSecret(path, name string) error {
	answer, err := s.ask(http.MethodDelete, path+"/"+url.PathEscape(name), nil)
	if err == nil && answer.code/100 != 2 && answer.code != http.StatusNotFound {
		err = fmt.Errorf("the API server does not delete the Secret %s: %s. Remedy: correct the permissions of the image", name, answer.message())
	}
	return err
}
