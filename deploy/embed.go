// Package deploy holds the manifests of the dispatcher and of the recipes' classes. kubectl flex new
// makes a folder of some of them.
package deploy

import "embed"

// Files are what the ConfigMaps nfs and node-directory need beside them.
//
//go:embed examples/nfs.yaml examples/node-directory.yaml node-directories/kustomization.yaml node-directories/rbac.yaml
var Files embed.FS

// DispatcherRoles are the dispatcher's permissions, which the API server of the tests grants as well.
//
//go:embed base/dispatcher-rbac.yaml
var DispatcherRoles string
