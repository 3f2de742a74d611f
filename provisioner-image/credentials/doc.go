// Package credentials says where a Cinder is and how to log in to it. It reads a cloud config file
// in the format of the OpenStack cloud provider, a clouds.yaml, or the environment that the
// OpenStack clients use.
//
// It opens no file and no connection: files come by a function. No error and no warning of it holds
// a secret value, and a Secret is never printed.
//
// Start at Login in login.go and at form in form.go, whose tags are the one list of keys and
// variables.
package credentials
