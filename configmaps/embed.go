// Package configmaps holds a file for each class that is shipped: the StorageClass, the ConfigMap
// with its script, and what both need. kubectl flex new makes a folder of some of them.
package configmaps

import "embed"

// Files are all of them.
//
//go:embed *.yaml
var Files embed.FS
