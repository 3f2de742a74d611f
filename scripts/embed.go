// Package scripts holds the provisioners in bash, one a recipe. kubectl flex new makes a folder of
// some of them.
package scripts

import "embed"

// Files are the scripts that have no storage of their own to work with, and what their image is
// built by.
//
//go:embed Dockerfile.bash directory-provisioner.sh isolated-provisioner.sh
var Files embed.FS
