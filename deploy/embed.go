// Package deploy holds the manifests of the dispatcher. kubectl flex new reads some of them.
package deploy

import "embed"

// Files are the objects that a class may meet, and what directories on nodes need beside their
// file.
//
//go:embed base/*.yaml node-directories/*.yaml
var Files embed.FS

// DispatcherRoles are the dispatcher's permissions, which the API server of the tests grants as well.
//
//go:embed base/dispatcher-rbac.yaml
var DispatcherRoles string
