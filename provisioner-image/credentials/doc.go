// Package credentials says where a Cinder is and how to log in to it. It reads a cloud config file in the format of the
// OpenStack cloud provider, a clouds.yaml, or the environment that the OpenStack clients use.
//
// It opens no file and no connection: files come by a function. No error of it holds a secret value, and a Secret is
// never printed.
//
// Start at Login in login.go, and at fields in fields.go, the one list of what is understood.
package credentials
