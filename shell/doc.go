// Package shell is the program flex, which scripts of provisioners call. It is what a provisioning
// image in bash needs beside bash itself, with nothing of Kubernetes in it but HTTP.
//
// A verb is a file of this package, and a place in verbs. It exits with the codes of the contract,
// so that a script may end with it. Start at main.go.
package shell
