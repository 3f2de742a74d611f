// Package configmaps holds the provisioner ConfigMaps of the recipes. kubectl flex new makes a
// folder of some of them.
package configmaps

import "embed"

// Files are the ConfigMaps of a storage on the network, and of directories on nodes.
//
//go:embed nfs.yaml node-directory.yaml
var Files embed.FS
